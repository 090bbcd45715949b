"""A strong model's second look at past routing decisions. Owner: ``reflection``, which only advises."""

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Literal, get_args

import msgspec

from schemas.actor import Scope
from schemas.effectors.model_calls import ChatMessage, ModelCall
from schemas.entry import Entry, Severity, own_entries, own_events
from schemas.event import Event, Personal, Unit, Wake
from schemas.vocabulary.router import Mode

Dimension = Literal[
    "memory_availability",
    "intent_clarity",
    "tone_ambiguity",
    "context_sufficiency",
    "social_cue",
    "reference_ambiguity",
]
DIMENSIONS: tuple[Dimension, ...] = get_args(Dimension)
"""In what a decision can be ambiguous, and a model's second opinion on it differ."""


def foremost(differing: Mapping[Dimension, int]) -> Dimension:
    """Return the dimension that a model's differing opinions name most often; of equals the first listed.

    ``differing`` holds the number of these opinions by dimension.
    """
    return max(DIMENSIONS, key=lambda dimension: differing.get(dimension, 0))


Stratum = Literal["low_confidence", "high_confidence", "tie_break"]
"""Why a decision was looked at again."""

Ignored = Literal["", "low_confidence", "user_satisfied", "dimension_without_signal", "invalid"]
"""Why an insight does not count; empty: it counts.

``low_confidence``: the model was not sure enough of it. ``user_satisfied``: the person was content with the decision.
``dimension_without_signal``: the dimension that it names does not show in the decision's signals. ``invalid``: it
suggests a mode that was not on offer.
"""


Time = Annotated[int, msgspec.Meta(ge=0)]
"""Unix nanoseconds."""


class Sampled(msgspec.Struct, frozen=True, kw_only=True):
    """A past decision that is looked at again."""

    exchange: str
    stratum: Stratum
    selected_mode: Mode


class ReflectionScheduled(Event, frozen=True, kw_only=True, tag="forged_id.reflection.scheduled"):
    """When the next look back is due, if the agent is idle then."""

    wake_after_ms: Wake


class ReflectionRequested(Event, frozen=True, kw_only=True, tag="forged_id.reflection.requested"):
    """A model is asked for a second opinion on a batch of past decisions.

    Unless there is an answer before, reflection is woken ``wake_after_ms`` later and gives up.
    """

    batch: tuple[Sampled, ...]
    call: ModelCall
    wake_after_ms: Wake = 0


class Insight(msgspec.Struct, frozen=True, kw_only=True):
    """A second opinion on one decision.

    ``decided_ns`` is when that was made (Unix nanoseconds). ``dimension`` says where the ambiguity lay, ``confidence``
    how sure the model is. ``counts`` only where every safeguard holds; else ``ignored`` names the one that does not.
    """

    exchange: str
    stratum: Stratum
    selected_mode: Mode
    suggested_mode: Mode
    agrees: bool
    dimension: Dimension
    confidence: Unit
    counts: bool
    ignored: Ignored
    rationale: Personal = ""
    decided_ns: Time = 0


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """The insights that count on decisions made from ``start_ns`` (Unix nanoseconds) until the next span begins.

    ``counted`` is their number; ``disagree``: dimension -> how many of them disagree and name it.
    """

    start_ns: Time
    counted: Annotated[int, msgspec.Meta(ge=1)]
    disagree: dict[Dimension, Annotated[int, msgspec.Meta(ge=1)]]


class ReflectionConcluded(Event, frozen=True, kw_only=True, tag="forged_id.reflection.concluded"):
    """The result of a look back.

    ``disagreement`` is the share of the insights that count and disagree, on decisions of the last 7 days (the
    window); ``counted`` is how many count, ``spans`` when those decisions were made, oldest first. ``dominant`` is the
    dimension of most disagreements and ``dominant_share`` its share of them. ``pressure``: the disagreement is
    sustained, and the regulator may act on it. ``reason`` is empty where the model was understood, else
    ``answer_invalid``, ``unanswered`` or the reason of ``llm.failed``: the batch then adds nothing.
    """

    insights: tuple[Insight, ...]
    counted: Annotated[int, msgspec.Meta(ge=0)]
    disagreement: Unit
    dominant: Dimension | None
    dominant_share: Unit
    pressure: bool
    wake_after_ms: Wake
    reason: str = ""
    spans: tuple[Span, ...] = ()


ReflectionConfigured, ReflectionFailed = own_events("reflection")

_entry = partial(Entry, owner="reflection", scope=Scope.AGENT)

ENTRIES = (
    _entry(
        meaning="When the next look back at routing decisions is due.",
        sample=ReflectionScheduled(wake_after_ms=300_000),
    ),
    _entry(
        meaning="A model is asked for a second opinion on past routing decisions.",
        asks="llm",
        sample=ReflectionRequested(
            batch=(Sampled(exchange="0" * 32, stratum="tie_break", selected_mode="RESPOND"),),
            call=ModelCall(purpose="reflect", messages=(ChatMessage(role="user", content="RESPOND or CLARIFY?"),)),
            wake_after_ms=240_000,
        ),
    ),
    _entry(
        meaning="Second opinions on past routing decisions, and whether they disagree for long enough to correct it.",
        sample=ReflectionConcluded(
            insights=(
                Insight(
                    exchange="0" * 32,
                    stratum="tie_break",
                    selected_mode="RESPOND",
                    suggested_mode="CLARIFY",
                    agrees=False,
                    dimension="memory_availability",
                    confidence=0.8,
                    counts=True,
                    ignored="",
                    decided_ns=1_700_000_000_000_000_000,
                ),
            ),
            counted=1,
            disagreement=1.0,
            dominant="memory_availability",
            dominant_share=1.0,
            pressure=False,
            wake_after_ms=300_000,
            spans=(Span(start_ns=1_699_984_800_000_000_000, counted=1, disagree={"memory_availability": 1}),),
        ),
    ),
    *own_entries(
        ReflectionConfigured,
        ReflectionFailed,
        owner="reflection",
        scope=Scope.AGENT,
        then="nothing else waits for it",
        failed_topic="forged_id.llm.completed",
        severity=Severity.WARNING,
    ),
)
