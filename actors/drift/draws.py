"""Random draws, from a generator seeded with the id of the message being decided: same message, same draws. Pure.

They decide when an idle agent has its next thought (a *drift*), and from which concept (a term that occurred in
remembered exchanges, the *episodes*) it starts. The most salient episode is the most exciting and new one.
"""

from collections.abc import Sequence
from hashlib import sha256
from typing import NamedTuple

from numpy.random import Philox

from actors.drift.settings import DriftSettings
from schemas.vocabulary.drift import Kind, Strategy

STRATEGIES: tuple[Strategy, ...] = ("decaying", "recent", "salient", "random")
"""Ways to choose the first concept: one that fades, one of the latest or of the most salient episode, or any."""

KINDS: tuple[Kind, ...] = ("reflection", "question", "hypothesis")
"""Kinds of thoughts."""

_MANTISSA_BITS = 53  # of a float
_LONGEST_MS = 30 * 24 * 3600 * 1000
"""The longest time until the next drift: thirty days."""


class Pause(NamedTuple):
    """The time until the next drift, whether it is a long gap, and the draws that it was computed from."""

    wake_after_ms: int
    long_gap: bool
    draws: tuple[float, ...]


NO_PAUSE = Pause(0, False, ())
"""No timer is set."""


class DriftDraws(NamedTuple):
    """The course of a drift: strategies in the order of trying, the kind of thought, and all draws.

    ``pick``, in [0, 1), chooses among the concepts that a strategy allows.
    """

    strategies: tuple[Strategy, ...]
    pick: float
    kind: Kind
    draws: tuple[float, ...]


def draw(message_id: str, purpose: str, count: int) -> tuple[float, ...]:
    """Return numbers in [0, 1) from a generator seeded with the message's id; each purpose has its own stream."""
    key = int.from_bytes(sha256(f"{message_id}\n{purpose}".encode()).digest()[:16], "little")
    # Use raw words: numpy guarantees the generator's bit stream, but not how it makes floats of it.
    words = Philox(key=key).random_raw(count).tolist()
    return tuple((word >> (64 - _MANTISSA_BITS)) / (1 << _MANTISSA_BITS) for word in words)


def pause_of(draws: tuple[float, ...], settings: DriftSettings, fruitless: int = 0) -> Pause:
    """Return the time until the next drift, given three draws: for the jitter, whether the gap is long, and how long.

    It doubles with each of the ``fruitless`` drifts in a row before, up to the longest pause.
    """
    jitter, chance, length = draws
    interval = settings.interval_ms * (1.0 + settings.jitter * (2.0 * jitter - 1.0))
    is_long = chance < settings.long_gap_chance
    if is_long:
        interval *= settings.long_gap_least + length * (settings.long_gap_most - settings.long_gap_least)
    if fruitless:
        interval = min(interval * 2.0**fruitless, max(interval, settings.longest_pause_ms))
    return Pause(min(max(1, round(interval)), _LONGEST_MS), is_long, draws)


def draw_pause(message_id: str, settings: DriftSettings, fruitless: int = 0) -> Pause:
    """Return the time until the next drift, as a message draws it, after ``fruitless`` drifts in a row."""
    return pause_of(draw(message_id, "pause", 3), settings, fruitless)


def draw_drift(message_id: str, settings: DriftSettings) -> DriftDraws:
    """Return the course of the drift that a message starts."""
    *order_draws, pick, kind = draws = draw(message_id, "course", len(STRATEGIES) + 2)
    weights = {name: weight for name in STRATEGIES if (weight := getattr(settings, name)) > 0.0}
    return DriftDraws(_ordered(weights, order_draws), pick, KINDS[int(kind * len(KINDS))], draws)


def _ordered(weights: dict[Strategy, float], order_draws: Sequence[float]) -> tuple[Strategy, ...]:
    """Return all strategies in random order, each drawn by weight among those left."""
    weights_left, order = dict(weights), list[Strategy]()
    for drawn in order_draws[: len(weights)]:
        remaining, chosen = drawn * sum(weights_left.values()), next(reversed(weights_left))
        for name, weight in weights_left.items():
            remaining -= weight
            if remaining < 0.0:
                chosen = name
                break
        order.append(chosen)
        del weights_left[chosen]
    return tuple(order)
