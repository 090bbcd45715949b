"""Which fault comes when: drawn from a seed alone, so that the same seed gives the same campaign."""

import random
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum

import msgspec


class Kind(StrEnum):
    """What is done to a target."""

    KILL = "kill"
    """SIGKILL; it is started again at the end of the fault, or by its supervisor."""
    RESTART = "restart"
    """SIGTERM: it hands over, ends, and is started again, as in a rolling restart."""
    PAUSE = "pause"
    """SIGSTOP, for longer than a lease; then SIGCONT: the zombie wakes and believes that it leads."""
    CUT = "cut"
    """Its network is gone; it runs on."""
    FILL = "fill"
    """Its disk is full."""
    CLOG = "clog"
    """A consumer subscribes to everything, and reads nothing."""


LASTS_S: Mapping[Kind, tuple[float, float]] = {
    Kind.KILL: (0.5, 4.0),
    Kind.RESTART: (0.5, 2.0),
    Kind.PAUSE: (4.0, 9.0),  # a lease is three seconds
    Kind.CUT: (4.0, 9.0),
    Kind.FILL: (2.0, 6.0),
    Kind.CLOG: (5.0, 15.0),
}
Gap = tuple[float, float]
GAP_S: Gap = (2.0, 12.0)
"""Seconds between the beginnings of two faults, from least to most: less than many last, so that they meet."""

Targets = Mapping[Kind, Sequence[str]]


class Fault(msgspec.Struct, frozen=True):
    """One fault: its beginning, in seconds from that of the campaign, and how long it lasts."""

    at_s: float
    kind: Kind
    target: str
    lasts_s: float

    def __str__(self) -> str:
        return f"{self.at_s:7.1f} s  {self.kind} {self.target} for {self.lasts_s:.1f} s"


def schedule(seed: int, seconds: float, targets: Targets, gap_s: Gap = GAP_S) -> tuple[Fault, ...]:
    """Draw the faults that begin within ``seconds``; a longer campaign of a seed begins as a shorter one does.

    Every kind comes once before any comes again, and so does every target of a kind.

    Raises:
        ValueError: there is nothing that could be hurt.
    """
    if not any(targets.values()):
        raise ValueError("a campaign needs something to hurt")
    draw = random.Random(f"campaign-{seed}")
    kinds = _dealt(draw, sorted(kind for kind, names in targets.items() if names))
    names = {kind: _dealt(draw, sorted(targets[kind])) for kind in sorted(targets) if targets[kind]}
    faults: list[Fault] = []
    at = draw.uniform(*gap_s)
    while at < seconds:
        kind = Kind(next(kinds))
        faults.append(Fault(round(at, 1), kind, next(names[kind]), round(draw.uniform(*LASTS_S[kind]), 1)))
        at += draw.uniform(*gap_s)
    return tuple(faults)


def _dealt(draw: random.Random, cards: Sequence[str]) -> Iterator[str]:
    """Deal cards from a shuffled deck, and shuffle it again whenever it is empty."""
    while True:
        yield from draw.sample(cards, len(cards))
