"""What external orchestrators report of their own loops. Owner: ``gateway``, the entry point that accepts it."""

from functools import partial
from typing import Annotated

import msgspec

from schemas.actor import Scope
from schemas.entry import Entry, Grouping, Severity
from schemas.event import Event, Personal, Unit

LoopId = Annotated[str, msgspec.Meta(min_length=1, max_length=250)]
"""Names a loop, one pass of a deliberation. A rerun of ``loop_001`` is ``loop_001_r1``; together they are a family."""

LoopName = Annotated[str, msgspec.Meta(min_length=1)]
"""A :data:`LoopId` without its limit of length: the name of a rerun is longer than that of its first loop."""

Tag = Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
"""A word that a critic attaches to an answer."""

Tags = Annotated[tuple[Tag, ...], msgspec.Meta(max_length=64)]
"""Words that a critic attaches to an answer, such as the biases that it sees in it."""

Label = Annotated[str, msgspec.Meta(max_length=200)]
"""A short text that the orchestrator sends; it may be empty."""

Reruns = Annotated[int, msgspec.Meta(ge=0, le=20)]
"""A number of reruns."""

Who = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
"""The name of a person who decides something."""


class LoopCompleted(Event, frozen=True, kw_only=True, tag="forged_id.loop.completed"):
    """A loop of an external orchestrator is done and asks whether to run again.

    ``reflection_status`` is how far it has come; only ``done`` is accepted. ``orchestrator_persona`` is the character
    that a model was told to play in it. ``alignment_score`` and ``drift_score`` are its critics' numbers, None where
    nobody scored it; ``bias_tags`` what they flagged; ``critics_conflict``: they contradict each other. Where a score
    is missing, and ``question`` and ``answer`` are given, guardrails has it made. ``max_reruns`` is the limit of the
    loop's family from here on, None: the one in force. The overrides count for this decision and those after it in its
    family, as ``loop.overridden`` does, and name ``override_by``: without it they do not count.
    """

    loop_id: LoopId
    reflection_status: Label = "done"
    orchestrator_persona: Label = ""
    alignment_score: Unit | None = None
    drift_score: Unit | None = None
    critics_conflict: bool = False
    bias_tags: Tags = ()
    override_fatigue: bool = False
    override_max_reruns: bool = False
    override_by: Label = ""
    question: Personal = ""
    answer: Personal = ""
    max_reruns: Reruns | None = None


class LoopOverridden(Event, frozen=True, kw_only=True, tag="forged_id.loop.overridden"):
    """A person, through an orchestrator, lifts the limit of fatigue or of reruns for the loop family of ``loop_id``."""

    loop_id: LoopId
    override_fatigue: bool
    override_max_reruns: bool
    override_by: Who
    override_reason: Personal


class ObservedEntity(msgspec.Struct, frozen=True, kw_only=True):
    """An entity: a piece of context that was, or could have been, put into a prompt.

    ``energy`` is how active it was, ``tokens`` its length in the prompt, ``centroid`` its vector in the embedding space
    (empty: unknown), ``terms`` its words.
    """

    id: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    energy: Unit = 0.0
    tokens: Annotated[int, msgspec.Meta(ge=0)] = 0
    centroid: Annotated[tuple[float, ...], msgspec.Meta(max_length=4096)] = ()
    terms: Annotated[tuple[Personal, ...], msgspec.Meta(max_length=1000)] = ()


MOST_TERMS = 5_000
"""Most terms of all entities of a tick together, chosen and candidates; more would take self-review over a second."""

MOST_NUMBERS = 100_000
"""Most numbers in the centroids of all entities of a tick together."""

Names = Annotated[tuple[str, ...], msgspec.Meta(max_length=1000)]
"""Ids of memories, or names of parts of an identity."""

Lines = Annotated[tuple[Personal, ...], msgspec.Meta(max_length=1000)]
"""Lines or words of a text."""

Vector = Annotated[tuple[float, ...], msgspec.Meta(max_length=4096)]
"""An embedding; empty: unknown."""


class TickObserved(Event, frozen=True, kw_only=True, tag="forged_id.tick.observed"):
    """The state of an agent at one tick (a step of its engine), as that external engine reports it.

    ``modes`` are the activations of the engine's own modes, such as ``guardian``. ``working_memory`` has the ids of
    what is in it; self-review remembers those of the tick before. ``identity_stable`` are the parts of the agent's
    identity as written, ``identity_current`` those that it used, and ``identity_lines`` the main lines of the text that
    says who it is. ``thought_lines`` are those of its thought, the text that the engine's model wrote. ``chosen`` went
    into its prompt of at most ``token_budget`` tokens (0: no budget), ``candidates`` could have. The stimulus is the
    text that the prompt answers, the context what the prompt holds besides. ``fatigue`` is how tired the agent is of
    deliberating.
    """

    arousal: Unit = 0.0
    valence: Annotated[float, msgspec.Meta(ge=-1.0, le=1.0)] = 0.0
    novelty: Unit = 0.0
    uncertainty: Unit = 0.0
    modes: Annotated[dict[str, Unit], msgspec.Meta(max_length=1000)] = msgspec.field(default_factory=dict)
    working_memory: Names = ()
    identity_stable: Names = ()
    identity_current: Names = ()
    identity_lines: Lines = ()
    thought_lines: Lines = ()
    stimulus_embedding: Vector = ()
    context_embedding: Vector = ()
    stimulus_terms: Lines = ()
    context_terms: Lines = ()
    chosen: Annotated[tuple[ObservedEntity, ...], msgspec.Meta(max_length=64)] = ()
    candidates: Annotated[tuple[ObservedEntity, ...], msgspec.Meta(max_length=256)] = ()
    token_budget: Annotated[int, msgspec.Meta(ge=0)] = 0
    fatigue: Unit = 0.0

    def __post_init__(self) -> None:
        """Refuse a tick whose entities hold more together than self-review can process between other decisions."""
        if fault := entities_fault(self):
            raise ValueError(fault)


def entities_fault(tick: TickObserved) -> str:
    """Return the error of a tick whose entities hold too much together; empty: there is none."""
    entities = (*tick.chosen, *tick.candidates)
    for what, count, most in (
        ("terms", sum(len(each.terms) for each in entities), MOST_TERMS),
        ("centroids", sum(len(each.centroid) for each in entities), MOST_NUMBERS),
    ):
        if count > most:
            return f"chosen and candidates have {count} {what} together: at most {most}"
    return ""


_entry = partial(Entry, owner="gateway", scope=Scope.AGENT)

ENTRIES = (
    _entry(
        meaning="A loop of an orchestrator outside is done; guardrails decide whether it runs again.",
        sample=LoopCompleted(loop_id="loop_001", orchestrator_persona="SAGE", alignment_score=0.72, drift_score=0.28),
    ),
    _entry(
        meaning="A person lets a loop family run on past its fatigue or its rerun limit.",
        sample=LoopOverridden(
            loop_id="loop_001",
            override_fatigue=True,
            override_max_reruns=False,
            override_by="ann",
            override_reason="close to an answer",
        ),
        severity=Severity.INFO,
        grouping=Grouping(copied_fields=("override_fatigue", "override_max_reruns")),
    ),
    _entry(
        meaning="The state of an agent's mind at one tick, seen by an engine outside.",
        sample=TickObserved(
            arousal=0.9,
            valence=-0.8,
            modes={"guardian": 0.9, "explorer": 0.8},
            working_memory=("tests", "docs"),
            chosen=(ObservedEntity(id="architect", energy=0.7, tokens=120, terms=("layers",)),),
            candidates=(ObservedEntity(id="validator", energy=0.6, tokens=100, terms=("tests",)),),
            token_budget=800,
        ),
    ),
)
