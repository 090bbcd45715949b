"""The regulator's settings: the time between cycles, thresholds of pressures, and limits of corrections.

A *pressure* is a fault of an agent's routing that one of the router's weights may correct (see ``pressures``). An
*adjustment* is a change of a weight, or a series of such steps, judged later; a *revert* undoes its latest step.
The *correction* of a weight is the sum of all its changes. It *fades* by adjustments that take it back.
"""

from typing import Annotated

import msgspec

from schemas.event import Milliseconds, Unit

Count = Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]
"""A number of decisions, opinions or agents."""

Step = Annotated[float, msgspec.Meta(ge=0.0, le=0.02)]
"""A change of a weight."""

_HOUR_MS = 3_600_000


class RegulatorSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the regulator decides with. "Above" and "below" are strict.

    A cycle looks at an agent's latest routing decisions. Each chose a mode of answering: in substance (RESPOND), by
    asking back (CLARIFY), after looking things up (ACT), by a brief word (ACKNOWLEDGE), or not at all (IGNORE). A share
    is that of one mode among them. A metric measures a pressure; lower is better.

    Attributes:
        period_ms: Time between two cycles of an agent.
        window_ms: Time that a cycle looks back on, with the precision of a slice.
        slices: Number of parts in which the window is counted; counts leave the window a slice at a time.
        decisions_needed: Decisions in the window that a cycle needs to judge anything.
        opinions_needed: Second opinions (a model's, for which reflection asks), on decisions since the latest change
            that reflection led to, that are needed to judge that change, or to make another because of reflection.
        cooldown_ms: Time between two changes of the same weight, a revert included.
        judge_after_ms: Age at which an adjustment is judged.
        evidence_within_ms: Age at which an adjustment is undone if nothing could be measured of it.
        day_ms: Within any span of this length, all changes of an agent's weights add up to ``per_day`` at most.
        per_day: See ``day_ms``; also the greatest single change.
        least_step: The smallest adjustment. If a smaller one is needed, or only a smaller one has room, none is made:
            its effect could not be told from chance. Steps that made things worse are halved down to this.
        gain: A change is ``gain`` times the pressure's severity.
        series_steps: Largest number of steps of a series. One step may be too small to change any decision. While the
            pressure lasts and the metric is not worse, the next one follows, twice as large, up to ``per_day``. All
            are judged together. 1: no series.
        doubt: A metric counts as worse if it rises by more than this many standard deviations of chance, over the same
            number of decisions.
        rest_ms: Time for which a pressure leaves a weight alone after a whole series of its steps did not help.
        fade_after_ms: A correction begins to fade, step by step, after this time without the pressures that it answers.
            If a step brings the pressure back, it is undone, and this time doubles for its weight, up to sixteen times.
        improved_below: A metric below this share of what it was confirms an adjustment.
        tie_breaker_above: Share of decisions that the scores leave ambiguous, above which it is a pressure.
        act_below: Share of ACT below which it is a pressure.
        respond_above: Share of RESPOND above which it is a pressure.
        respond_below: Share of RESPOND below which it is a pressure. This and the following are the limits of the
            monitor's alarms. Between them and the healthy range a share is only reported: the conversations themselves
            may be the cause.
        clarify_above: Share of CLARIFY above which it is a pressure.
        clarify_below: Share of CLARIFY below which it is a pressure, if a question back was missed at all.
        act_above: Share of ACT above which it is a pressure.
        acknowledge_above: Share of ACKNOWLEDGE above which it is a pressure.
        acknowledge_below: Share of ACKNOWLEDGE below which it is a pressure, if at least this share of the inputs were
            greetings or thanks.
        acknowledge_gestures: If ACKNOWLEDGE is below this share of the greetings and thanks, it is too rare, too.
        ignore_above: Share of IGNORE above which it is a pressure, which no weight corrects.
        missed_act_above: Share of decisions that should have been ACT above which it is a pressure by itself.
        misroute_above: Share of misroutes (decisions that feedback has shown to be wrong) above which it is a pressure.
        disagreement_above: Share of second opinions that disagree, above which it is a pressure, if reflection itself
            calls it one.
        dominance_above: Share of the disagreements above which their most frequent dimension (a way in which a decision
            can be ambiguous) decides what to change.
        entropy_below: Normalised entropy of the modes (0 to 1) below which it is a pressure.
        agents: Agents that a partition keeps. When there are more, an eighth is dropped: the least recently used ones
            whose weights were never moved, and only then others.

    Raises:
        ValueError: a judgement that would look back on time before the adjustment, or a ``per_day`` in which not even
            the least step has room. ``msgspec.convert`` reports it as a ``ValidationError``.
    """

    period_ms: Milliseconds = 24 * _HOUR_MS
    window_ms: Milliseconds = 24 * _HOUR_MS
    slices: Annotated[int, msgspec.Meta(ge=1, le=240)] = 24
    decisions_needed: Count = 10
    opinions_needed: Count = 10
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
    agents: Count = 10_000

    def __post_init__(self) -> None:
        """Refuse a judgement over a time before the adjustment, and a day without room for the least step."""
        if self.judge_after_ms < self.window_ms + self.window_ms / self.slices:
            raise ValueError("regulator setting 'judge_after_ms' is below 'window_ms' and a slice of it")
        if 0.0 < self.per_day < self.least_step:
            raise ValueError("regulator setting 'per_day' is below 'least_step': nothing could be adjusted")
