"""The regulator's settings: its rhythm, what counts as a pressure, and how small a correction stays."""

from typing import Annotated

import msgspec

from schemas.event import Milliseconds, Unit

Few = Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]
Step = Annotated[float, msgspec.Meta(ge=0.0, le=0.02)]

_HOUR_MS = 3_600_000


class RegulatorSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the regulator decides with. "Above" and "below" are strict.

    Attributes:
        period_ms: Time between two cycles of an agent.
        window_ms: What a cycle looks back on, to a slice of it.
        slices: In how many parts the window is counted: what leaves it leaves by the slice.
        decisions_needed: Decisions in the window that a cycle needs to judge anything.
        opinions_needed: Second opinions, on decisions since the latest change that reflection led to, that are needed
            to judge that change, or to make another because of reflection.
        cooldown_ms: Time between two changes of the same weight, a revert included.
        judge_after_ms: Age from which an adjustment is judged.
        evidence_within_ms: Age from which an adjustment that nothing could be measured of is undone.
        day_ms: In any span of this length all changes of an agent's weights together come to ``per_day`` at most.
        per_day: See ``day_ms``; also the greatest single change.
        least_step: The smallest adjustment: where less is called for, or has room, none is made, since its effect could
            not be told from chance; and what made things worse is halved down to this.
        gain: A change is ``gain`` times the pressure's severity.
        series_steps: Steps of a series at most. One step may be too small to change any decision: while the pressure
            lasts and nothing has become worse, the next one follows, twice as large up to ``per_day``, and all are
            judged together. 1: no series.
        doubt: Standard deviations of chance, as many decisions have it, by which a metric must have risen to be worse.
        rest_ms: How long a weight is left alone by a pressure that a whole series of its steps has not helped.
        fade_after_ms: Time without any of the pressures that a correction answers after which it begins to fade, a step
            at a time. A step after which the pressure returns is undone, and doubles this time for its weight, up to
            sixteen times.
        improved_below: A metric below this share of what it was confirms an adjustment.
        tie_breaker_above: Share of decisions left ambiguous by the scores that is a pressure.
        act_below: Share of ACT that is a pressure.
        respond_above: Share of RESPOND that is a pressure.
        respond_below: The same, of too little; this and the following are the monitor's red flags. Between those and
            the healthy range a share is reported only: it may be the talk's own.
        clarify_above: Share of CLARIFY that is a pressure.
        clarify_below: The same, of too little; where a question back was missed at all.
        act_above: Share of ACT that is a pressure.
        acknowledge_above: Share of ACKNOWLEDGE that is a pressure.
        acknowledge_below: The same, of too little; where that share of inputs were greetings or thanks at all.
        acknowledge_gestures: Share of greetings and thanks below which it is too little, too.
        ignore_above: Share of IGNORE that is a pressure, which no weight answers.
        missed_act_above: Share of decisions that should have been ACT that is a pressure, whatever other misroutes.
        misroute_above: Share of decisions that turned out to be misroutes that is a pressure.
        disagreement_above: Reflection's disagreement that is a pressure, where reflection itself calls it one.
        dominance_above: Share of the disagreements that one dimension must have to say what to change.
        entropy_below: Normalised entropy of the modes that is a pressure.
        agents: Agents of a partition that are kept; an eighth of them goes when there are more: those used least lately
            among the ones whose weights were never moved, and only then others.

    Raises:
        ValueError: a judgement that would look back on time before the adjustment, or a day's allowance in which not
            even the least step has room. ``msgspec.convert`` reports it as a ``ValidationError``.
    """

    period_ms: Milliseconds = 24 * _HOUR_MS
    window_ms: Milliseconds = 24 * _HOUR_MS
    slices: Annotated[int, msgspec.Meta(ge=1, le=240)] = 24
    decisions_needed: Few = 10
    opinions_needed: Few = 10
    cooldown_ms: Milliseconds = 48 * _HOUR_MS
    judge_after_ms: Milliseconds = 48 * _HOUR_MS
    evidence_within_ms: Milliseconds = 7 * 24 * _HOUR_MS
    day_ms: Milliseconds = 24 * _HOUR_MS
    per_day: Step = 0.02
    least_step: Step = 0.001
    gain: Unit = 0.05
    series_steps: Annotated[int, msgspec.Meta(ge=1, le=50)] = 8
    doubt: Annotated[float, msgspec.Meta(ge=0.0, le=10.0)] = 0.5
    rest_ms: Milliseconds = 14 * 24 * _HOUR_MS
    fade_after_ms: Milliseconds = 7 * 24 * _HOUR_MS
    improved_below: Unit = 0.9
    tie_breaker_above: Unit = 0.20
    act_below: Unit = 0.02
    respond_above: Unit = 0.75
    respond_below: Unit = 0.40
    clarify_above: Unit = 0.30
    clarify_below: Unit = 0.03
    act_above: Unit = 0.25
    acknowledge_above: Unit = 0.20
    acknowledge_below: Unit = 0.01
    acknowledge_gestures: Unit = 0.5
    ignore_above: Unit = 0.05
    missed_act_above: Unit = 0.05
    misroute_above: Unit = 0.10
    disagreement_above: Unit = 0.20
    dominance_above: Unit = 0.30
    entropy_below: Unit = 0.35
    agents: Few = 10_000

    def __post_init__(self) -> None:
        """Refuse a judgement over a time in which the adjustment was not yet made."""
        if self.judge_after_ms < self.window_ms + self.window_ms / self.slices:
            raise ValueError("regulator setting 'judge_after_ms' is below 'window_ms' and a slice of it")
        if 0.0 < self.per_day < self.least_step:
            raise ValueError("regulator setting 'per_day' is below 'least_step': nothing could be adjusted")
