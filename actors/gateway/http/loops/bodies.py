"""The bodies of requests and responses for loops and ticks.

Names, types and nesting are those of the reflection-guardrails API that orchestrators call (docs/http.md, "Loops").
"""

import re
from typing import Annotated, Any, Literal

import msgspec

from actors.gateway.external_events import InvalidField, check_name
from actors.gateway.http.bodies import Body, Name, Reason, read_body
from actors.gateway.http.loops.tick_limits import check_tick
from schemas.event import Unit
from schemas.intake.blank import is_blank, says_nothing
from schemas.vocabulary.loops import LoopCompleted, LoopOverridden, Reruns, Tag, TickObserved, Who

DONE = "done"
"""The only ``reflection_status`` that is accepted: the loop is completed."""

MOST_LOOP_ID = 250
"""Most characters of a loop's name: those of :data:`MOST_ROOT`, and the suffix of a rerun."""

MOST_ROOT = 200
"""Most characters of the name that an orchestrator gives a loop."""

_RERUN_SUFFIX = re.compile(r"_r[0-9]+$")
# The loops of an exchange are named by its id.
_EXCHANGE_LOOP = re.compile(r"[0-9a-f]{32}(_r[0-9]+)?")

Words = Annotated[str, msgspec.Meta(max_length=200_000)]
"""A question or an answer of the deliberation."""


class BiasTag(msgspec.Struct, frozen=True, kw_only=True):
    """A bias as an orchestrator's critic may write it, as an object; its other fields are not used."""

    tag: Tag


class LoopCompletion(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A loop is done; the answer says whether it runs again.

    The scores are those of its critics, in [0, 1]: ``alignment_score`` is how well the answer addresses what was asked,
    ``drift_score`` how far it strays from it. If one is missing, a critic here gives it for ``question`` and
    ``answer``; without those the loop is not run again. ``bias_tags`` names the biases that they found, and
    ``critics_conflict`` says that they contradict each other. ``orchestrator_persona`` names the role in which the
    orchestrator asks. ``max_reruns`` is the limit of the loop's family, which is the loop and all its reruns, from now
    on. ``override_fatigue`` lifts the limit on reruns that improve nothing, ``override_max_reruns`` that on all reruns:
    for this decision and, for a time, for later ones in the family. Either needs ``override_by``.
    """

    loop_id: Annotated[str, msgspec.Meta(min_length=1, max_length=MOST_LOOP_ID)]
    reflection_status: Annotated[str, msgspec.Meta(max_length=200)]
    orchestrator_persona: Annotated[str, msgspec.Meta(max_length=200)] | None = None
    override_fatigue: bool = False
    override_max_reruns: bool = False
    override_by: Annotated[str, msgspec.Meta(max_length=200)] | None = None
    alignment_score: Unit | None = None
    drift_score: Unit | None = None
    bias_tags: Annotated[tuple[Tag | BiasTag, ...], msgspec.Meta(max_length=64)] | None = None
    critics_conflict: bool = False
    question: Words | None = None
    answer: Words | None = None
    max_reruns: Reruns | None = None
    agent: Name | None = None


class GuardrailsOverride(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A person lifts limits for the family of a loop, for a time; a flag that is false puts its limit back.

    At least one of the two flags is given; the other is then false.
    """

    override_fatigue: bool | msgspec.UnsetType = msgspec.UNSET
    override_max_reruns: bool | msgspec.UnsetType = msgspec.UNSET
    override_by: Who
    override_reason: Reason
    agent: Name | None = None


class Tick(TickObserved, frozen=True, kw_only=True, tag=False, forbid_unknown_fields=True):
    """An external engine's state of an agent at one tick, with the fields of ``forged_id.tick.observed``.

    ``citizen`` is another name of ``agent``.
    """

    topic: Literal["forged_id.tick.observed"] = "forged_id.tick.observed"
    citizen: Name | None = None
    agent: Name | None = None

    def __post_init__(self) -> None:
        """Accept a tick that is too large: ``tick_event`` refuses it and names the field."""


_CONTENT = frozenset(TickObserved.__struct_fields__) - {"token_budget"}
"""Fields of which at least one must have content; a token budget alone says nothing about the agent."""


class ReflectionResult(msgspec.Struct, frozen=True, kw_only=True):
    """How a loop was judged. A score that nobody gave is shown as alignment 0 or drift 1.

    ``summary_valid``: both scores are good enough, and the critics agree. ``reflection_persona`` is the persona that
    judged. ``reflection_fatigue``, in [0, 1], grows with reruns that improve nothing. ``repeated_tags`` are the biases
    that came up in too many loop families of the agent lately, and ``bias_echo`` says whether there are any;
    ``repetition_counts`` says for each of this loop's biases in how many it came up.
    """

    alignment_score: float
    drift_score: float
    summary_valid: bool
    reflection_persona: str
    bias_echo: bool
    reflection_fatigue: float
    repeated_tags: tuple[str, ...]
    repetition_counts: dict[str, int]


class DecisionResult(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the loop runs again. ``new_loop_id`` is null when its family is finalized.

    ``original_loop_id`` is the first loop of its family. ``rerun_number`` is the number of the rerun that is ordered,
    or, when the family ends, of the loop itself.
    """

    decision: Literal["rerun", "finalize"]
    original_loop_id: str
    new_loop_id: str | None
    rerun_reason: str
    rerun_number: int
    rerun_count: int
    max_reruns: int


class LoopDecision(msgspec.Struct, frozen=True, kw_only=True):
    """The decision on a loop that is done; ``timestamp`` is when the log stored it."""

    status: Literal["success"] = "success"
    loop_id: str
    reflection_result: ReflectionResult
    decision_result: DecisionResult
    orchestrator_persona: str
    timestamp: str


class GuardrailsStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The state of every guardrail for a loop's family now, and how the loop itself was judged.

    The scores, ``summary_valid``, ``rerun_reason``, ``rerun_trigger`` (all that speaks for or against a rerun) and
    ``reflection_persona`` are the loop's. All other fields are its family's, with overrides in force and after its
    later loops. ``force_finalize``: a limit ends the family, whatever the scores.
    """

    loop_id: str
    rerun_count: int
    max_reruns: int
    rerun_limit_reached: bool
    bias_echo: bool
    reflection_fatigue: float
    fatigue_threshold_exceeded: bool
    force_finalize: bool
    rerun_reason: str
    rerun_trigger: tuple[str, ...]
    alignment_score: float
    drift_score: float
    summary_valid: bool
    reflection_persona: str


class GuardrailsShown(msgspec.Struct, frozen=True, kw_only=True):
    """The status of a loop."""

    status: Literal["success"] = "success"
    guardrails_status: GuardrailsStatus


class GuardrailsOverridden(msgspec.Struct, frozen=True, kw_only=True):
    """An override that is in force, who ordered it, and why."""

    status: Literal["success"] = "success"
    loop_id: str
    override_fatigue: bool
    override_max_reruns: bool
    overridden_by: str
    override_reason: str


class Accepted(msgspec.Struct, frozen=True, kw_only=True):
    """The id of an event that was stored, and its sequence in the log."""

    status: Literal["success"] = "success"
    id: str
    seq: int


def read_loop_body(raw: bytes, kind: type[Body]) -> Body:
    """Read the body of a request about a loop, or a tick; raises InvalidField, which names the field.

    A tick of zeros has content. One that leaves out everything is refused: self-review would learn from its zeros.
    """
    body = read_body(raw, kind, open_to=(BiasTag,))  # a critic's bias may have fields of its own, which are ignored
    fields = msgspec.json.decode(raw).items() if kind is Tick else ()
    if kind is Tick and not any(_has_content(value) for name, value in fields if name in _CONTENT):
        what = "the tick says nothing: it needs modes, arousal, valence or another of its fields (/schema has them)"
        raise InvalidField("", what, "missing_field")
    return body


def _has_content(value: Any) -> bool:
    """Return whether a value has content: a number, a text, or something that contains one."""
    if isinstance(value, dict | list):
        return any(map(_has_content, value.values() if isinstance(value, dict) else value))
    # Control characters are refused where their field is read, which the error then names.
    return not (is_blank(value) and value.isprintable()) if isinstance(value, str) else True


def check_loop(loop_id: str) -> None:
    """Raise InvalidField for a loop's name that cannot be part of a URL or does not belong in a log."""
    check_name("loop_id", loop_id, most=MOST_LOOP_ID)
    if "/" in loop_id or loop_id in (".", ".."):
        raise InvalidField("loop_id", "loop_id is part of an address: it may hold no slash, and be neither . nor ..")


def check_callers_loop(loop_id: str) -> None:
    """Raise InvalidField for a loop's name without room for the suffix of a rerun, or one that belongs to an exchange.

    The loop of an exchange is its answer. If a caller could complete it, it would be judged before it has an answer.
    """
    root = _RERUN_SUFFIX.sub("", loop_id)
    if len(root) > MOST_ROOT:
        raise InvalidField(
            "loop_id", f"loop_id has {len(root)} characters before its rerun's ending: at most {MOST_ROOT}"
        )
    if _EXCHANGE_LOOP.fullmatch(loop_id):
        raise InvalidField("loop_id", "loop_id has the form of an exchange's id here: name your loops otherwise")


def completion_event(body: LoopCompletion) -> LoopCompleted:
    """Return the event of a loop that is completed.

    Raises:
        InvalidField: its status is not that of a completed loop, a name cannot be accepted, an override names no
            person, or a question comes without its answer.
    """
    check_loop(body.loop_id)
    check_callers_loop(body.loop_id)
    if body.reflection_status != DONE:
        raise InvalidField(
            "reflection_status",
            f"Invalid reflection status. Must be '{DONE}'.",
        )
    by = (body.override_by or "").strip()
    if (body.override_fatigue or body.override_max_reruns) and is_blank(by):
        raise InvalidField("override_by", "override_by: an override is recorded with who ordered it: name them")
    for field, words, other in (("answer", body.answer, body.question), ("question", body.question, body.answer)):
        if not says_nothing(other or "") and says_nothing(words or ""):
            what = f"{field} is missing: a critic judges question and answer together, and one alone would go unread"
            raise InvalidField(field, what, "missing_field")
    tags = tuple(bias if isinstance(bias, str) else bias.tag for bias in body.bias_tags or ())
    named = [("orchestrator_persona", body.orchestrator_persona), ("override_by", by)]
    for field, name in (*named, *(("bias_tags", tag) for tag in tags)):
        if name:
            check_name(field, name)
    return LoopCompleted(
        loop_id=body.loop_id,
        reflection_status=body.reflection_status,
        orchestrator_persona=body.orchestrator_persona or "",
        alignment_score=body.alignment_score,
        drift_score=body.drift_score,
        critics_conflict=body.critics_conflict,
        bias_tags=tags,
        override_fatigue=body.override_fatigue,
        override_max_reruns=body.override_max_reruns,
        override_by=by,
        question=body.question or "",
        answer=body.answer or "",
        max_reruns=body.max_reruns,
    )


def override_event(loop_id: str, body: GuardrailsOverride) -> LoopOverridden:
    """Return the event of an override; raises InvalidField when it does not say who ordered it, or why."""
    check_loop(loop_id)
    for field, value in (("override_by", body.override_by), ("override_reason", body.override_reason)):
        if is_blank(value):
            raise InvalidField(field, f"{field} is blank: an override is recorded with who ordered it, and why")
    check_name("override_by", body.override_by)
    if body.override_fatigue is msgspec.UNSET and body.override_max_reruns is msgspec.UNSET:
        flags = "override_fatigue or override_max_reruns"
        raise InvalidField("override_fatigue", f"the body overrides nothing: it needs {flags}", "missing_field")
    return LoopOverridden(
        loop_id=loop_id,
        override_fatigue=body.override_fatigue is True,
        override_max_reruns=body.override_max_reruns is True,
        override_by=body.override_by,
        override_reason=body.override_reason,
    )


def tick_event(body: Tick) -> tuple[str, TickObserved]:
    """Return the agent of a tick (empty: it names none), and its event.

    Raises:
        InvalidField: it names two agents, or holds too much.
    """
    if body.citizen and body.agent and body.citizen != body.agent:
        raise InvalidField("citizen", "agent and citizen name two different agents: give agent alone")
    agent = body.agent or body.citizen or ""
    check_tick(body)
    tick = msgspec.convert(body, TickObserved, from_attributes=True)
    return agent, tick
