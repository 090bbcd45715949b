"""Computes the swarm's coherence index from counts. Pure; every term is rounded to six decimals."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from actors.swarm.availability_events import LostStage
from actors.swarm.settings import SwarmSettings
from schemas.persistent import Map
from schemas.vocabulary.intuition import Similar
from schemas.vocabulary.swarm import SwarmMeasured

PRECEDENTS, AGREEING = "precedents", "precedents_agreeing"
DELIVERED, UNDELIVERED = "delivered", "undelivered"
FAILURES, DECIDED, FAILED = "failures", "decided.", "failed."
"""Names of counts. The last two are followed by an actor's name; ``FAILURES`` is the sum over all actors."""

_NONE: Mapping[str, LostStage] = Map()

Polarity = Literal["do", "withhold"]
"""What a precedent argues for: doing as an input asks, or not."""


class PrecedentDecision(msgspec.Struct, frozen=True):
    """A decision on an input similar to a known precedent: whether the input was let through.

    ``start_ns`` is when the slice of the window began in which it was decided.
    """

    precedent: str
    executed: bool
    start_ns: int


def side_of(precedent: Similar) -> Polarity:
    """Return what a precedent argues for; a harmful outcome argues against what was done."""
    withheld = precedent.action == "withhold"
    return "withhold" if withheld != (precedent.outcome == "harmful") else "do"


def agreement_of(precedents: Sequence[Similar]) -> tuple[int, int]:
    """Return how many of an input's precedents side with their majority, and how many there are; zeros for only one."""
    if len(precedents) < 2:
        return 0, 0
    doing = sum(side_of(each) == "do" for each in precedents)
    return max(doing, len(precedents) - doing), len(precedents)


def share(part: int, whole: int) -> float:
    """Return a share in [0, 1]; 1.0 where the whole is zero."""
    return round(part / whole, 6) if whole else 1.0


def alignment_of(health: Sequence[float]) -> float:
    """Return 1 - the variance of the actors' health, in [0.75, 1]."""
    if not health:
        return 1.0
    mean = sum(health) / len(health)
    return round(1.0 - sum((each - mean) ** 2 for each in health) / len(health), 6)


def consistency_of(decisions: Sequence[PrecedentDecision], needed: int) -> float:
    """Return the share of decisions that agree with the majority on their precedent; 1.0 for fewer than ``needed``."""
    if len(decisions) < needed:
        return 1.0
    votes: Counter[tuple[str, bool]] = Counter((each.precedent, each.executed) for each in decisions)
    agreeing = sum(max(votes[name, True], votes[name, False]) for name in {name for name, _ in votes})
    return share(agreeing, len(decisions))


def measure(
    count_of: Callable[[str], int],
    watched: Iterable[str],
    consistency: float,
    settings: SwarmSettings,
    lost: Mapping[str, LostStage] = _NONE,
) -> SwarmMeasured:
    """Return the index with its terms; the health of the ``watched`` actors counts once they have decided anything.

    ``count_of`` returns a count of the window, by its name.

    A ``lost`` stage is not a matter of degree: the health of other stages cannot compensate for it. While it is lost,
    only inputs of its served partitions are delivered.
    """
    agreement = share(count_of(AGREEING), count_of(PRECEDENTS))
    delivered = count_of(DELIVERED)
    delivered_share = share(delivered, delivered + count_of(UNDELIVERED))
    alignment = alignment_of(_healths(count_of, watched)) if count_of(FAILURES) else 1.0
    if lost:
        alignment = 0.0
        needed = [each.served for stage, each in lost.items() if stage in settings.required]
        delivered_share = round(delivered_share * min(needed, default=1.0), 6)
    sci = round(
        settings.precedent_weight * agreement
        + settings.health_weight * alignment
        + settings.delivered_weight * delivered_share
        + settings.consistency_weight * consistency,
        6,
    )
    return SwarmMeasured(
        sci=sci,
        precedent_agreement=agreement,
        health_alignment=alignment,
        delivered_share=delivered_share,
        decision_consistency=consistency,
        healthy=sci >= settings.healthy_from and not lost,
        lost=tuple(sorted(lost)),
    )


def has_moved(sci: float, last: float, settings: SwarmSettings) -> bool:
    """Whether an index (``sci``) differs so much from the last recorded one that it is recorded."""
    return round(abs(sci - last), 6) >= settings.moved_by


def _healths(count_of: Callable[[str], int], watched: Iterable[str]) -> list[float]:
    found = []
    for actor in watched:
        failed = count_of(FAILED + actor)
        decisions = count_of(DECIDED + actor) + failed
        if decisions:
            found.append(1.0 - failed / decisions)
    return found
