"""Random draws, from a generator seeded with the id of the message being decided: same message, same draws. Pure."""

from collections.abc import Sequence
from hashlib import sha256
from typing import NamedTuple

import numpy as np

from actors.drift.settings import DriftSettings
from schemas.vocabulary.drift import Kind, Strategy

STRATEGIES: tuple[Strategy, ...] = ("decaying", "recent", "salient", "random")
KINDS: tuple[Kind, ...] = ("reflection", "question", "hypothesis")

_MANTISSA = 53
_LONGEST_MS = 30 * 24 * 3600 * 1000


class Pause(NamedTuple):
    """How long until the next drift, and the draws that say so."""

    wake_after_ms: int
    long_gap: bool
    draws: tuple[float, ...]


NO_PAUSE = Pause(0, False, ())
"""No timer is set."""


class DriftDraws(NamedTuple):
    """The course of a drift: strategies in the order in which they are asked, the pick, the kind, and the draws."""

    strategies: tuple[Strategy, ...]
    pick: float
    kind: Kind
    draws: tuple[float, ...]


def draw(message_id: str, purpose: str, count: int) -> tuple[float, ...]:
    """Return numbers in [0, 1) from a generator seeded with the message's id; each purpose has its own stream."""
    key = int.from_bytes(sha256(f"{message_id}\n{purpose}".encode()).digest()[:16], "little")
    # Use raw words: numpy guarantees the generator's bit stream, but not how it makes floats of it.
    words = np.random.Philox(key=key).random_raw(count).tolist()
    return tuple((word >> (64 - _MANTISSA)) / (1 << _MANTISSA) for word in words)


def pause_of(draws: tuple[float, ...], settings: DriftSettings, fruitless: int = 0) -> Pause:
    """Return the time until the next drift, given three draws: jitter, whether the gap is long, and how long.

    It doubles with each of the ``fruitless`` drifts in a row before, up to the longest pause.
    """
    jitter, chance, stretch = draws
    interval = settings.interval_ms * (1.0 + settings.jitter * (2.0 * jitter - 1.0))
    is_long = chance < settings.long_gap_chance
    if is_long:
        interval *= settings.long_gap_least + stretch * (settings.long_gap_most - settings.long_gap_least)
    if fruitless:
        interval = min(interval * 2.0**fruitless, max(interval, settings.longest_pause_ms))
    return Pause(min(max(1, round(interval)), _LONGEST_MS), is_long, draws)


def draw_pause(message_id: str, settings: DriftSettings, fruitless: int = 0) -> Pause:
    """Return the time until the next drift, as a message draws it."""
    return pause_of(draw(message_id, "pause", 3), settings, fruitless)


def draw_drift(message_id: str, settings: DriftSettings) -> DriftDraws:
    """Return the course of the drift that a message starts."""
    *lots, pick, kind = draws = draw(message_id, "course", len(STRATEGIES) + 2)
    weights = {name: weight for name in STRATEGIES if (weight := getattr(settings, name)) > 0.0}
    return DriftDraws(_ordered(weights, lots), pick, KINDS[int(kind * len(KINDS))], draws)


def _ordered(weights: dict[Strategy, float], lots: Sequence[float]) -> tuple[Strategy, ...]:
    """Return all strategies in random order, each drawn by its weight among those left."""
    left, order = dict(weights), list[Strategy]()
    for lot in lots[: len(weights)]:
        reached, chosen = lot * sum(left.values()), next(reversed(left))
        for name, weight in left.items():
            reached -= weight
            if reached < 0.0:
                chosen = name
                break
        order.append(chosen)
        del left[chosen]
    return tuple(order)
