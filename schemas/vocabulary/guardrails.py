"""Whether a finished deliberation runs again. Owner: ``guardrails``.

A loop is one pass of a deliberation; a loop and its reruns are a family.
"""

from functools import partial
from typing import Annotated, Literal

import msgspec

from schemas.actor import Scope
from schemas.effectors.model_calls import ChatMessage, ModelCall
from schemas.entry import Entry, Grouping, Severity, own_entries, own_events
from schemas.event import Event, Milliseconds, Personal, Unit
from schemas.vocabulary.loops import LoopName, Who

Count = Annotated[int, msgspec.Meta(ge=0)]

Trigger = Literal["max_reruns", "bias_echo", "fatigue", "alignment", "drift", "summary", "conflict"]
"""What counted for a rerun or against one.

Against it: the limits ``max_reruns``, ``bias_echo`` and ``fatigue``. For it: ``alignment`` or ``drift``, a score that
is not good enough; ``summary``, a reflection that is not valid; ``conflict``, critics who contradict each other.
"""


class LoopTrace(msgspec.Struct, frozen=True, kw_only=True):
    """All that was known of a loop when its completion was judged.

    Attributes:
        loop_id: The loop; ``family`` is the loop that it and all its reruns go back to.
        rerun_of: The loop that it is a rerun of; empty for a family's first.
        rerun_depth: 0 for a family's first loop, n for its nth rerun, whose name ends in ``_r`` and that number.
        rerun_count: Reruns of the family so far, including the one ordered by this decision: those ordered, or those
            that its loops' names show, whichever are more.
        max_reruns: Limit of ``rerun_count``.
        alignment_score: How well the answer addresses what was asked; None where nobody scored it.
        drift_score: How far it strays from that; None where nobody scored it.
        summary_valid: Whether its reflection (what the critics made of its answer) is valid: its scores are good
            enough, and its critics agree.
        bias_echo: Whether the same bias came up in too many loop families of the agent lately.
        repeated_tags: The biases of ``bias_echo``.
        repetition_counts: Bias tag -> in how many of the latest loop families it came up.
        reflection_fatigue: The family's fatigue after this loop: it grows with each rerun that improves nothing, and
            falls with one that does. ``fatigue_increment`` is by how much this loop moved it,
            ``fatigue_increased`` whether upwards; ``fatigue_threshold_exceeded``: it is high enough to end the family.
        improvement_detected: Whether a rerun's scores are better than those of the loop judged before it.
        rerun_trigger: Every trigger that applied and that nobody overrode, in the order of decision. ``rerun_reason``
            is that of the first, ``rerun_reason_detail`` has the numbers of all.
        force_finalize: Whether a limit ended the family, whatever its scores.
        overridden_by: Who overrode a limit that would have ended it; empty: nobody.
        orchestrator_persona: The persona (the character that a model was told to play) that asked;
            ``reflection_persona``: the one that judged.
        source: Where the scores are from: ``caller``, ``features`` (appraisal computed them from the texts), ``llm`` (a
            model was the critic) or ``none``.
        completion: Id of the ``loop.completed`` that is judged, where a critic had to be asked first; else empty.
        own_limit: Whether ``max_reruns`` was set for this family; else it is the setting.
        fatigue_lifted_ns: Until when an override of fatigue holds for the family (Unix nanoseconds), 0: none does;
            ``reruns_lifted_ns``: until when one of the limit of reruns does.
    """

    loop_id: LoopName
    family: LoopName
    rerun_of: str = ""
    rerun_depth: Count = 0
    rerun_count: Count = 0
    max_reruns: Count = 3
    alignment_score: Unit | None = None
    drift_score: Unit | None = None
    summary_valid: bool = False
    bias_echo: bool = False
    repeated_tags: tuple[str, ...] = ()
    repetition_counts: dict[str, Count] = {}
    reflection_fatigue: Unit = 0.0
    fatigue_increment: float = 0.0
    fatigue_increased: bool = False
    fatigue_threshold_exceeded: bool = False
    improvement_detected: bool = False
    rerun_trigger: tuple[Trigger, ...] = ()
    rerun_reason: str = ""
    rerun_reason_detail: str = ""
    force_finalize: bool = False
    overridden_by: str = ""
    orchestrator_persona: str = ""
    reflection_persona: str = ""
    source: Literal["caller", "features", "llm", "none"] = "none"
    completion: str = ""
    own_limit: bool = False
    fatigue_lifted_ns: Count = 0
    reruns_lifted_ns: Count = 0


class GuardrailsFinalized(Event, frozen=True, kw_only=True, tag="forged_id.guardrails.finalized"):
    """A loop family ends with this loop: nothing asks for another pass (``no_issues_detected``), or nothing was scored.

    ``best`` is the family's best-scored loop: its answer is the one that counts.
    """

    trace: LoopTrace
    best: LoopName


class GuardrailsForceFinalized(Event, frozen=True, kw_only=True, tag="forged_id.guardrails.force_finalized"):
    """A loop family ends by a limit, a bias echo or fatigue, though the scores may ask for another pass."""

    trace: LoopTrace
    best: LoopName


class GuardrailsRerunOrdered(Event, frozen=True, kw_only=True, tag="forged_id.guardrails.rerun_ordered"):
    """A loop is to run again as ``new_loop_id``, for its reason; ``best`` is the family's best-scored so far."""

    trace: LoopTrace
    new_loop_id: LoopName
    best: LoopName


class GuardrailsRepeated(Event, frozen=True, kw_only=True, tag="forged_id.guardrails.repeated"):
    """A loop that was judged already was completed again: the judgement stands. ``decided`` is the id of its event.

    ``completion`` is the id of the ``loop.completed`` that it answers, where a critic was asked in between; else empty.
    """

    loop_id: LoopName
    decided: str
    completion: str = ""


class GuardrailsRefused(Event, frozen=True, kw_only=True, tag="forged_id.guardrails.refused"):
    """A completion or an override that cannot be accepted: ``unknown_loop``, or ``status_not_done``."""

    loop_id: LoopName
    reason: Literal["unknown_loop", "status_not_done"]


class GuardrailsOverridden(Event, frozen=True, kw_only=True, tag="forged_id.guardrails.overridden"):
    """A person's override holds for a loop family from here on, for ``lasts_ms``."""

    loop_id: LoopName
    family: LoopName
    override_fatigue: bool
    override_max_reruns: bool
    overridden_by: Who
    override_reason: Personal
    lasts_ms: Milliseconds


class AppraisalRequested(Event, frozen=True, kw_only=True, tag="forged_id.guardrails.appraisal_requested"):
    """Appraisal is asked how good the answer of an external orchestrator's loop is: nobody had scored it.

    ``completion`` is the id of its ``loop.completed``; the appraisal refers to it.
    """

    loop_id: LoopName
    completion: str
    question: Personal
    answer: Personal


class CritiqueRequested(Event, frozen=True, kw_only=True, tag="forged_id.guardrails.critique_requested"):
    """A model is asked, as a pessimistic critic, how good an answer is; ``completion`` is set for an external loop."""

    loop_id: LoopName
    call: ModelCall
    completion: str = ""


GuardrailsConfigured, GuardrailsFailed = own_events("guardrails")


_TRACE = LoopTrace(
    loop_id="loop_001",
    family="loop_001",
    rerun_count=1,
    alignment_score=0.72,
    drift_score=0.28,
    summary_valid=True,
    rerun_trigger=("alignment", "drift"),
    rerun_reason="alignment_threshold_not_met",
    rerun_reason_detail="alignment 0.72 < 0.75; drift 0.28 > 0.25",
    orchestrator_persona="SAGE",
    reflection_persona="SAGE",
    source="caller",
)

_entry = partial(Entry, owner="guardrails", scope=Scope.SESSION)

ENTRIES = (
    _entry(
        meaning="A loop family ends with this loop: nothing asks for another pass.",
        sample=GuardrailsFinalized(
            trace=LoopTrace(
                loop_id="loop_001_r1",
                family="loop_001",
                rerun_of="loop_001",
                rerun_depth=1,
                rerun_count=1,
                alignment_score=0.81,
                drift_score=0.12,
                summary_valid=True,
                rerun_reason="no_issues_detected",
                source="caller",
            ),
            best="loop_001_r1",
        ),
    ),
    _entry(
        meaning="A loop family ends by its rerun limit, a bias echo or fatigue.",
        sample=GuardrailsForceFinalized(
            trace=LoopTrace(
                loop_id="loop_001_r3",
                family="loop_001",
                rerun_of="loop_001_r2",
                rerun_depth=3,
                rerun_count=3,
                alignment_score=0.7,
                drift_score=0.3,
                summary_valid=True,
                reflection_fatigue=0.45,
                fatigue_increment=0.15,
                fatigue_increased=True,
                rerun_trigger=("max_reruns", "alignment", "drift"),
                rerun_reason="max_reruns_reached",
                force_finalize=True,
                source="features",
            ),
            best="loop_001_r1",
        ),
        severity=Severity.INFO,
        grouping=Grouping(copied_fields=("trace.rerun_reason", "trace.rerun_count")),
    ),
    _entry(
        meaning="A loop is to run again, for a reason.",
        sample=GuardrailsRerunOrdered(trace=_TRACE, new_loop_id="loop_001_r1", best="loop_001"),
    ),
    _entry(
        scope=Scope.AGENT,
        meaning="A loop was completed again: its judgement stands.",
        sample=GuardrailsRepeated(loop_id="loop_001", decided="0" * 32),
    ),
    _entry(
        scope=Scope.AGENT,
        meaning="A completion or an override of a loop cannot be taken.",
        sample=GuardrailsRefused(loop_id="loop_404", reason="unknown_loop"),
    ),
    _entry(
        scope=Scope.AGENT,
        meaning="A person's override of a guardrail holds for a loop family, for a time.",
        sample=GuardrailsOverridden(
            loop_id="loop_001",
            family="loop_001",
            override_fatigue=True,
            override_max_reruns=False,
            overridden_by="ann",
            override_reason="close to an answer",
            lasts_ms=3_600_000,
        ),
        severity=Severity.WARNING,
        grouping=Grouping(copied_fields=("override_fatigue", "override_max_reruns", "lasts_ms")),
    ),
    _entry(
        meaning="Appraisal is asked to score an answer that an external loop came to.",
        asks="appraisal",
        sample=AppraisalRequested(
            loop_id="loop_001", completion="0" * 32, question="What is the capital of Peru?", answer="Lima is."
        ),
    ),
    _entry(
        meaning="A model is asked, as the pessimist, what an answer is worth.",
        asks="llm",
        sample=CritiqueRequested(
            loop_id="0" * 32,
            call=ModelCall(
                purpose="reflect", messages=(ChatMessage(role="user", content="What is the capital of Peru?"),)
            ),
        ),
    ),
    *own_entries(
        GuardrailsConfigured,
        GuardrailsFailed,
        owner="guardrails",
        scope=Scope.AGENT,
        then="a live answer goes out unjudged, and says so",
        failed_topic="forged_id.appraisal.answer_appraised",
    ),
)
