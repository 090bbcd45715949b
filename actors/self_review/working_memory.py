"""What an agent keeps from tick to tick: its working memory, and how it uses its identity. Pure, in millionths.

**Working memory.** An external engine names its content, and churn is 1 - the Jaccard similarity of the sets before and
after. For an exchange here the content is the recalled memories (each weighted by its energy), their terms, the
stimulus's terms, and the earlier content at half its weight; churn is 1 - the weighted Jaccard similarity. Without
weights and earlier content, nearly every two exchanges would differ completely, so a change of topic could not stand
out. With weights of 1 and nothing carried over, both measures are the same.

**Identity.** An external engine names the parts of its identity that are written down and used. For an exchange here,
drift is the mean of two numbers: the share of the soul (the text that says who the agent is) that the latest answers
did not use, if a model answers with a soul; and how far the modes and decisions of the latest ticks lie from the
agent's long-run averages.
"""

from collections.abc import Iterable, Mapping

import msgspec

from actors.self_review.tick import hash_name
from schemas.persistent import Map
from schemas.vocabulary.responder import IdentityUse

MICRO = 1_000_000
"""Millionths in one."""

MOST_ENTRIES = 256
"""Most entries of a working memory; those with the highest weights are kept."""

WorkingMemory = tuple[tuple[int, int], ...]
"""Hashes of the content, in ascending order, each with its weight in millionths."""

_LEAST_WEIGHT = 10_000
"""Weight below which an entry of working memory is dropped, in millionths."""

_LATEST, _LONG_RUN = 300_000, 50_000
"""Weight of the newest tick in the two moving averages of modes, in millionths."""

_LEAST_AVERAGE = 100
"""Average below which a mode is dropped, in millionths."""

_MOST_PARTS = 64
"""Most parts of a soul that are followed."""


class Identity(msgspec.Struct, frozen=True):
    """How an agent uses its identity: averages of the use of its soul's parts and of its modes, in millionths."""

    parts: Map[str, int] = Map()
    lately: Map[str, int] = Map()
    long_run: Map[str, int] = Map()


def working_memory_of(weights: Mapping[str, float]) -> WorkingMemory:
    """Return the content of a working memory, given names and their weights in [0, 1]."""
    found: dict[int, int] = {}
    for name, weight in weights.items():
        number, millionths = hash_name(name), round(weight * MICRO)
        if millionths > found.get(number, 0):
            found[number] = millionths
    return _bounded(found)


def with_carried_over(now: WorkingMemory, before: WorkingMemory | None, carry: float) -> WorkingMemory:
    """Return the content after a tick: the new entries, and the earlier ones with a share of their weight."""
    if not carry or before is None:
        return now
    share, found = round(carry * MICRO), dict(now)
    for number, weight in before:
        left = weight * share // MICRO
        if left > found.get(number, _LEAST_WEIGHT - 1):
            found[number] = left
    return _bounded(found)


def churn_of(now: WorkingMemory, before: WorkingMemory | None) -> float:
    """Return 1 - the weighted Jaccard similarity of the content now and before; 0 if there was none before."""
    if before is None:
        return 0.0
    one, other = dict(now), dict(before)
    common = sum([min(one[number], other[number]) for number in one.keys() & other.keys()])
    # The larger of two weights is their sum without the smaller one.
    total = sum(one.values()) + sum(other.values()) - common
    return round((total - common) / total, 6) if total else 0.0


def identity_after(
    known: Identity, use: IdentityUse | None, modes: Mapping[str, float], decision: str = ""
) -> Identity:
    """Return how an agent uses its identity after a tick; ``use`` is None if the answer was given without a soul."""
    parts = known.parts
    if use is not None:
        current = frozenset(use.current)
        stable = list(dict.fromkeys(use.stable))[:_MOST_PARTS]
        parts = Map(
            {name: _moved_towards(parts.get(name, MICRO), MICRO * (name in current), _LATEST) for name in stable}
        )
    active = {name: round(activation * MICRO) for name, activation in modes.items()}
    if decision:
        active[f"decided {decision}"] = MICRO
    has_averages = bool(known.long_run)
    return Identity(
        parts,
        _averaged(known.lately, active, _LATEST if has_averages else MICRO),
        _averaged(known.long_run, active, _LONG_RUN if has_averages else MICRO),
    )


def drift_of(identity: Identity) -> float:
    """Return how far an agent is from its identity, in [0, 1]: from its soul, if it has one, and its usual modes."""
    found = [churn_of(_as_working_memory(identity.lately), _as_working_memory(identity.long_run))]
    if identity.parts:
        found.append(1.0 - sum(identity.parts.values()) / len(identity.parts) / MICRO)
    return round(sum(found) / len(found), 6)


def _as_working_memory(modes: Map[str, int]) -> WorkingMemory:
    return tuple((number, modes[name]) for number, name in _numbered(modes))


def _numbered(names: Iterable[str]) -> Iterable[tuple[int, str]]:
    return ((hash_name(name), name) for name in sorted(names))


def _averaged(known: Map[str, int], active: Mapping[str, int], share: int) -> Map[str, int]:
    averages = {name: _moved_towards(known.get(name, 0), active.get(name, 0), share) for name in {*known, *active}}
    return Map({name: averages[name] for name in sorted(averages) if averages[name] >= _LEAST_AVERAGE})


def _moved_towards(before: int, now: int, share: int) -> int:
    return before + (now - before) * share // MICRO


def _bounded(found: Mapping[int, int]) -> WorkingMemory:
    kept = [(number, weight) for number, weight in found.items() if weight >= _LEAST_WEIGHT]
    if len(kept) > MOST_ENTRIES:
        kept = sorted(kept, key=lambda each: (-each[1], each[0]))[:MOST_ENTRIES]
    return tuple(sorted(kept))
