"""An agent's review of its own prompting. Owner: ``self_review``.

The field ``citizen`` names the agent. An entity is a piece of context that a prompt holds or could hold; a seat is a
review's vote for or against one. Modes are here what an agent attends to, such as ``guardian`` (there is danger) or
``explorer`` (something is new), each with an activation from 0 to 1.
"""

from functools import partial
from typing import Annotated, Literal

import msgspec

from schemas.actor import Scope
from schemas.entry import Entry, Grouping, Severity, own_entries, own_events
from schemas.event import Event, Personal, Unit

Count = Annotated[int, msgspec.Meta(ge=0)]

Signal = Literal["affect", "mode_conflict", "wm_churn", "novel_uncertain", "identity_drift", "regret"]
"""A number of a tick that is compared with its history; ``wm_churn`` is the change of working memory."""

SeatType = Literal["metacog_negative", "metacog_positive", "metacog_quality"]
"""A review's verdict on an entity: swapped out, swapped in, or the quality of the prompt that it was in."""


class Signals(msgspec.Struct, frozen=True, kw_only=True):
    """The six signals of a tick.

    ``affect`` is arousal times how negative the valence is. ``mode_conflict`` is how opposed the agent's active modes
    are to each other. ``wm_churn`` is the part of working memory that changed. ``novel_uncertain`` is novelty times
    uncertainty. ``identity_drift`` is how far the agent is from who it says it is. ``regret`` is how much the best swap
    of one entity would have raised the score.
    """

    affect: Unit
    mode_conflict: float
    wm_churn: Unit
    novel_uncertain: Unit
    identity_drift: Unit
    regret: Unit


class Dimensions(msgspec.Struct, frozen=True, kw_only=True):
    """The five parts of a score; a low ``redundancy`` is good, and high values of the others.

    ``relevance`` is how close the prompt's context is to the stimulus (the text that it answers).
    ``energy_consistency`` is how far the entities' shares of the energy (how strongly each memory was recalled) match
    their shares of the tokens. ``redundancy`` is the share that the text of the agent's identity has in common with its
    answer (at an external engine: with the thought, the text that the engine's model wrote). ``diversity`` is how
    different the entities are from each other. ``outcome_prior`` is the mean worth that earlier reviews gave them.
    """

    relevance: Unit
    energy_consistency: Unit
    redundancy: Unit
    diversity: Unit
    outcome_prior: Unit


class Counterfactual(msgspec.Struct, frozen=True, kw_only=True):
    """The best swap of one entity for another within the token budget; both empty where none is better."""

    swapped_out: str
    swapped_in: str
    score_improvement: Unit


class SeatsApplied(msgspec.Struct, frozen=True, kw_only=True):
    """The entities that a review voted against, and for."""

    negative: tuple[str, ...]
    positive: tuple[str, ...]


class SelfReviewTriggered(Event, frozen=True, kw_only=True, tag="forged_id.self_review.triggered"):
    """A signal exceeded its highest earlier value: the agent reviews its own prompting.

    ``tick`` counts the agent's ticks from 1. ``reasons`` are these signals, such as ``affect_record``, first those that
    the agent's modes weigh most. ``timestamp`` is the server's time of the tick.
    """

    citizen: str
    tick: Count
    reasons: tuple[str, ...]
    metrics: Signals
    timestamp: str


class SelfReviewResult(Event, frozen=True, kw_only=True, tag="forged_id.self_review.result"):
    """What a review found: the score of the prompt, its parts, and what a better one would have held."""

    citizen: str
    tick: Count
    score: Unit
    dimensions: Dimensions
    regret: Unit
    counterfactual: Counterfactual
    seats_applied: SeatsApplied


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """A signal or a part of the score against its own past.

    ``mad`` is the median absolute deviation of its past values; ``normalised`` is (value - median) / (``mad`` +
    0.000001).
    """

    value: float
    median: float
    mad: float
    normalised: float


class SignalReading(msgspec.Struct, frozen=True, kw_only=True):
    """A signal against its ``record``, its highest earlier value: it fires above ``record`` + ``guard``, a margin.

    ``weight`` is how much the modes count it; ``mad`` and ``normalised`` are as in ``Reading``.
    """

    value: float
    record: float
    guard: float
    median: float
    mad: float
    normalised: float
    weight: float
    fired: bool


class SelfReviewMeasured(Event, frozen=True, kw_only=True, tag="forged_id.self_review.measured"):
    """The numbers that a review was computed from, besides those of its result.

    ``parts`` are the score's parts and the score, ``criticality`` how tense the agent was, ``modes`` which were
    active.
    """

    citizen: str
    tick: Count
    signals: dict[Signal, SignalReading]
    parts: dict[str, Reading]
    modes: dict[str, Unit]
    criticality: Unit


class SelfReviewDisarmed(Event, frozen=True, kw_only=True, tag="forged_id.self_review.disarmed"):
    """A review may be triggered again.

    Where its cause has passed, ``forged_id.resolved`` is appended together with this event, never alone. A partition
    appends only if nobody else has written to its subjects below ``self_review`` since it read them. ``resolved`` is
    none of these, so it could not be fenced alone.

    The reason is ``lapsed`` for a review that was never resolved, once the statistics hold nothing of its cause any
    more.
    """

    citizen: str
    tick: Count
    reason: Literal["resolved", "lapsed"] = "resolved"


class Resolved(Event, frozen=True, kw_only=True, tag="forged_id.resolved"):
    """The cause of the last review has passed: the latest scores are good and the agent is calm."""

    citizen: str
    tick: Count
    recent_scores: tuple[Unit, ...]
    criticality: Unit


class SeatAdded(Event, frozen=True, kw_only=True, tag="forged_id.trace.seat_added"):
    """A review's vote on one entity, in [-1, 1]; it moves the entity's worth (an average of its votes) and its weight
    in memory.

    ``context`` are terms of the stimulus that it was given on. A ``local`` vote counts for the worth where one of them
    comes up again; without terms it counts everywhere.
    """

    citizen: str
    tick: Count
    entity: str
    seat_type: SeatType
    value: Annotated[float, msgspec.Meta(ge=-1.0, le=1.0)]
    context: tuple[Personal, ...] = ()
    scope: Literal["local"] = "local"


SelfReviewConfigured, SelfReviewFailed = own_events("self_review")


_SIGNALS = Signals(
    affect=0.82, mode_conflict=0.05, wm_churn=0.67, novel_uncertain=0.21, identity_drift=0.12, regret=0.08
)

_entry = partial(Entry, owner="self_review", scope=Scope.AGENT)

ENTRIES = (
    _entry(
        meaning="A signal set a record: the agent reviews its own prompting.",
        sample=SelfReviewTriggered(
            citizen="felix",
            tick=51234,
            reasons=("affect_record", "wm_churn_record"),
            metrics=_SIGNALS,
            timestamp="2025-10-26T12:34:56Z",
        ),
        severity=Severity.INFO,
        grouping=Grouping(copied_fields=("tick", "reasons")),
        ended_by=(Resolved, SelfReviewDisarmed),
    ),
    _entry(
        meaning="What a review found: the prompt's score, its parts, and the best swap of one entity.",
        sample=SelfReviewResult(
            citizen="felix",
            tick=51234,
            score=0.788783,
            dimensions=Dimensions(
                relevance=0.83, energy_consistency=0.92, redundancy=0.12, diversity=0.71, outcome_prior=0.64
            ),
            regret=0.09,
            counterfactual=Counterfactual(swapped_out="docs", swapped_in="validator", score_improvement=0.09),
            seats_applied=SeatsApplied(negative=("docs",), positive=("validator",)),
        ),
    ),
    _entry(
        meaning="The numbers a review rests on: signals against their records, the score's parts against their past.",
        sample=SelfReviewMeasured(
            citizen="felix",
            tick=51234,
            signals={
                "affect": SignalReading(
                    value=0.82,
                    record=0.41,
                    guard=0.05,
                    median=0.1,
                    mad=0.05,
                    normalised=14.39971,
                    weight=1.0,
                    fired=True,
                )
            },
            parts={"score": Reading(value=0.788783, median=0.8, mad=0.02, normalised=-0.560822)},
            modes={"guardian": 0.4},
            criticality=0.31,
        ),
    ),
    _entry(
        meaning="The agent's gate may fire again.",
        sample=SelfReviewDisarmed(citizen="felix", tick=51256),
    ),
    _entry(
        meaning="What set off the last review has passed: good scores, and calm.",
        sample=Resolved(citizen="felix", tick=51256, recent_scores=(0.78, 0.81, 0.79), criticality=0.12),
    ),
    _entry(
        meaning="A review's word on one entity: it moves the entity's outcome average and its weight in memory.",
        sample=SeatAdded(
            citizen="felix", tick=51234, entity="fact:3", seat_type="metacog_positive", value=0.09, context=("tap",)
        ),
    ),
    *own_entries(
        SelfReviewConfigured,
        SelfReviewFailed,
        owner="self_review",
        scope=Scope.AGENT,
        then="nothing else waits for it",
        failed_topic="forged_id.tick.observed",
        severity=Severity.WARNING,
    ),
)
