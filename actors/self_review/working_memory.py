"""What an agent keeps from tick to tick: its working memory, and how it uses its identity. Pure, in millionths.

**Working memory.** An external engine names its content, and churn is the source's measure: 1 - the Jaccard similarity
of the sets before and after. For an exchange here the content is the recalled memories (each weighted by its energy),
their terms, the stimulus's terms, and half of the earlier content; churn is 1 - the weighted Jaccard similarity.
Without weights and the earlier half, nearly every two exchanges of ordinary talk would differ completely, so a change
of topic could not stand out. With weights of 1 and nothing carried over, both measures are the same.

**Identity.** An external engine names the parts of its identity that are written and used. For an exchange here, drift
has two parts: how much of the soul's parts the latest answers took up, if a model answers with a soul; and how far the
modes and decisions of the latest ticks lie from the agent's long-run averages.
"""

from collections.abc import Iterable, Mapping

import msgspec

from actors.self_review.tick import hash_names
from schemas.persistent import Map
from schemas.vocabulary.responder import IdentityUse

MICRO = 1_000_000
MOST_HELD = 256
"""Largest number of entries kept of a working memory; those with the highest weights are."""

Held = tuple[tuple[int, int], ...]
"""Hashes of the content, in order, each with its weight in millionths."""

_LEAST = 10_000
_LATEST, _LONG_RUN = 300_000, 50_000
"""Weight of the newest tick in the moving averages of identity, in millionths."""

_MOST_PARTS = 64


class Identity(msgspec.Struct, frozen=True):
    """How an agent uses its identity, in millionths: parts of its soul, and modes of late and in the long run."""

    parts: Map[str, int] = Map()
    lately: Map[str, int] = Map()
    long_run: Map[str, int] = Map()


def held_of(weights: Mapping[str, float]) -> Held:
    """Return the content of a working memory, given names and their weights in [0, 1]."""
    found: dict[int, int] = {}
    for name, weight in weights.items():
        [number] = hash_names([name])
        found[number] = max(found.get(number, 0), round(weight * MICRO))
    return _bounded(found)


def carried_over(now: Held, before: Held | None, carry: float) -> Held:
    """Return the content after a tick: the new entries, and the earlier ones with a share of their weight."""
    if not carry or before is None:
        return now
    share, found = round(carry * MICRO), dict(now)
    for number, weight in before:
        found[number] = max(found.get(number, 0), weight * share // MICRO)
    return _bounded(found)


def churn_of(now: Held, before: Held | None) -> float:
    """Return 1 - the weighted Jaccard similarity of the content now and before; 0 if there was none before."""
    if before is None:
        return 0.0
    one, other = dict(now), dict(before)
    most = sum(max(one.get(number, 0), other.get(number, 0)) for number in one.keys() | other.keys())
    both = sum(min(weight, other[number]) for number, weight in one.items() if number in other)
    return round((most - both) / most, 6) if most else 0.0


def identity_after(
    known: Identity, use: IdentityUse | None, modes: Mapping[str, float], decision: str = ""
) -> Identity:
    """Return how an agent uses its identity after a tick; ``use`` is None if the answer was given without a soul."""
    parts = known.parts
    if use is not None:
        current = frozenset(use.current)
        stable = list(dict.fromkeys(use.stable))[:_MOST_PARTS]
        parts = Map({name: _moved(parts.get(name, MICRO), MICRO * (name in current), _LATEST) for name in stable})
    active = {name: round(activation * MICRO) for name, activation in modes.items()}
    if decision:
        active[f"decided {decision}"] = MICRO
    begun = bool(known.long_run)
    return Identity(
        parts,
        _averaged(known.lately, active, _LATEST if begun else MICRO),
        _averaged(known.long_run, active, _LONG_RUN if begun else MICRO),
    )


def drift_of(identity: Identity) -> float:
    """Return how far an agent is from its identity, in [0, 1]: from its soul, if it has one, and its usual modes."""
    found = [churn_of(_as_held(identity.lately), _as_held(identity.long_run))]
    if identity.parts:
        found.append(1.0 - sum(identity.parts.values()) / len(identity.parts) / MICRO)
    return round(sum(found) / len(found), 6)


def _as_held(modes: Map[str, int]) -> Held:
    return tuple((place, modes[name]) for place, name in _numbered(modes))


def _numbered(names: Iterable[str]) -> Iterable[tuple[int, str]]:
    return ((hash_names([name])[0], name) for name in sorted(names))


def _averaged(known: Map[str, int], active: Mapping[str, int], share: int) -> Map[str, int]:
    moved = {name: _moved(known.get(name, 0), active.get(name, 0), share) for name in {*known, *active}}
    return Map({name: moved[name] for name in sorted(moved) if moved[name] >= 100})


def _moved(before: int, now: int, share: int) -> int:
    return before + (now - before) * share // MICRO


def _bounded(found: Mapping[int, int]) -> Held:
    kept = [(number, weight) for number, weight in found.items() if weight >= _LEAST]
    if len(kept) > MOST_HELD:
        kept = sorted(kept, key=lambda each: (-each[1], each[0]))[:MOST_HELD]
    return tuple(sorted(kept))
