"""When a share or a rate counts as unhealthy, and as healthy again. Pure.

A share is that of one mode of answering (RESPOND, CLARIFY and the like) among an agent's latest decisions. A rate is a
share of ambiguous or wrong decisions (misroutes). Hysteresis: a measure beyond a limit is reported at once. It counts
as beyond until it is back inside by a margin.
"""

from collections.abc import Iterator
from typing import Literal

import msgspec

from actors.monitor.decision_window import Window, ambiguous_share, entropy, misroute_share, shares
from actors.monitor.settings import MonitorSettings, Range
from schemas.event import Event
from schemas.persistent import Map
from schemas.vocabulary.monitor import ModeInRange, ModeOutOfRange, ModeRedFlag, Rate, RateExceeded, RateRecovered, Side
from schemas.vocabulary.router import Mode

Level = Literal["out", "red"]
"""How far from healthy: outside the healthy range, or beyond the limit of a red flag."""


class Condition(msgspec.Struct, frozen=True):
    """A mode that is out of its healthy range, on which side and how far."""

    level: Level
    side: Side


def judge_modes(
    window: Window, conditions: Map[Mode, Condition], settings: MonitorSettings
) -> Iterator[ModeOutOfRange | ModeRedFlag | ModeInRange]:
    """Yield the changes of the modes' conditions; the window must hold decisions."""
    count = len(window.decisions)
    for mode, share in shares(window).items():
        healthy = settings.ranges.get(mode)
        if healthy is None:
            continue
        before = conditions.get(mode)
        after = condition_of(share, healthy, before, settings.hysteresis)
        if after == before:
            continue
        if after is None:
            yield ModeInRange(mode=mode, share=share, low=healthy.low, high=healthy.high, decisions=count)
        elif after.level == "red":
            yield _red_flag(mode, share, healthy, after.side, count)
        else:
            yield ModeOutOfRange(
                mode=mode, share=share, side=after.side, low=healthy.low, high=healthy.high, decisions=count
            )


def judge_rates(
    window: Window, exceeded: Map[Rate, bool], settings: MonitorSettings
) -> Iterator[RateExceeded | RateRecovered]:
    """Yield the changes of the rates; the window must hold decisions."""
    measures: tuple[tuple[Rate, float, float, Side], ...] = (
        ("tie_breaker", ambiguous_share(window), settings.tie_breaker_above, "above"),
        ("misroute", misroute_share(window), settings.misroute_above, "above"),
        ("missed_act", misroute_share(window, "missed_act"), settings.missed_act_above, "above"),
        ("mode_entropy", entropy(shares(window)), settings.entropy_below, "below"),
    )
    count = len(window.decisions)
    for rate, value, threshold, side in measures:
        before = rate in exceeded
        span = threshold if side == "above" else 1.0 - threshold
        margin = _margin(settings.hysteresis, span) if before else 0.0
        after = _beyond(value, threshold, side, margin)
        if after and not before:
            yield RateExceeded(rate=rate, value=value, side=side, threshold=threshold, decisions=count)
        elif before and not after:
            yield RateRecovered(rate=rate, value=value, threshold=threshold, decisions=count)


def condition_of(share: float, healthy: Range, before: Condition | None, hysteresis: float) -> Condition | None:
    """Return a mode's condition by its share, given its condition before; None: healthy.

    ``hysteresis`` is how far inside a limit the share must be to count as back.
    """
    for side in _SIDES:
        limit, red = (healthy.high, healthy.red_above) if side == "above" else (healthy.low, healthy.red_below)
        same_side = before is not None and before.side == side
        was_red = same_side and before is not None and before.level == "red"
        # A red flag ends a quarter of the way back to the healthy limit at the earliest, so that it does not flicker.
        if _beyond(share, red, side, _margin(hysteresis, abs(red - limit)) if was_red else 0.0):
            return Condition("red", side)
        if _beyond(share, limit, side, _margin(hysteresis, healthy.high - healthy.low) if same_side else 0.0):
            return Condition("out", side)
    return None


def with_event(conditions: Map[Mode, Condition], event: Event) -> Map[Mode, Condition]:
    """Return the modes' conditions after an event of the monitor."""
    match event:
        case ModeOutOfRange(mode=mode, side=side):
            return conditions.set(mode, Condition("out", side))
        case ModeRedFlag(mode=mode, side=side):
            return conditions.set(mode, Condition("red", side))
        case ModeInRange(mode=mode) if mode in conditions:
            return conditions.delete(mode)
    return conditions


_SIDES: tuple[Side, Side] = ("above", "below")


def _red_flag(mode: Mode, share: float, healthy: Range, side: Side, count: int) -> ModeRedFlag:
    limit, symptom = (
        (healthy.red_above, healthy.sign_above) if side == "above" else (healthy.red_below, healthy.sign_below)
    )
    return ModeRedFlag(mode=mode, share=share, side=side, limit=limit, sign=symptom, decisions=count)


def _beyond(value: float, limit: float, side: Side, margin: float) -> bool:
    return value > limit - margin if side == "above" else value < limit + margin


def _margin(hysteresis: float, span: float) -> float:
    """Return how far inside a limit counts as back: the setting, at most a quarter of the possible span."""
    return min(hysteresis, span / 4)
