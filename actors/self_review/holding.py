"""What an agent holds from tick to tick: its working memory, and how it uses its identity. Pure, in millionths.

**Working memory.** An engine outside names what is in it, and churn is the source's: 1 less the Jaccard similarity of
two sets. Of an exchange here it is what came to mind (each memory by its energy), its terms, the stimulus's, and half
of what was held before. So a turn to another matter is a surge and no wall: between sets of ids nearly every two
exchanges of ordinary talk would differ wholly, and nothing could ever be more than that. With weights of 1 and nothing
carried over both are the same measure.

**Identity.** An engine outside names the parts of it that are written and used. Of an exchange here it is how much of
the soul's parts the latest answers took up, where a model answers with one, and how far the latest ticks' modes, and
what was decided in them, lie from the agent's long run: who it says it is, and who it has been.
"""

from collections.abc import Iterable, Mapping

import msgspec

from actors.self_review.tick import hashed
from schemas.persistent import Map
from schemas.vocabulary.responder import IdentityUse

MICRO = 1_000_000
MOST_HELD = 256
"""Things of a working memory that are kept, the weightiest."""

Held = tuple[tuple[int, int], ...]
"""Hashes of what is held, in order, each with its weight in millionths."""

_LEAST = 10_000
_LATEST, _LONG_RUN = 300_000, 50_000
"""Weight of the newest tick in the moving averages of identity, in millionths."""

_MOST_PARTS = 64


class Identity(msgspec.Struct, frozen=True):
    """How an agent uses its identity, in millionths: parts of its soul, and modes, lately and in the long run."""

    parts: Map[str, int] = Map()
    lately: Map[str, int] = Map()
    long_run: Map[str, int] = Map()


def held_of(weights: Mapping[str, float]) -> Held:
    """Return what is held, by names; weights are in [0, 1]."""
    found: dict[int, int] = {}
    for name, weight in weights.items():
        [number] = hashed([name])
        found[number] = max(found.get(number, 0), round(weight * MICRO))
    return _bounded(found)


def carried(now: Held, before: Held | None, carry: float) -> Held:
    """Return what is held after a tick: what is new, and a share of what was held before."""
    if not carry or before is None:
        return now
    share, found = round(carry * MICRO), dict(now)
    for number, weight in before:
        found[number] = max(found.get(number, 0), weight * share // MICRO)
    return _bounded(found)


def churn_of(now: Held, before: Held | None) -> float:
    """Return 1 less the weighted Jaccard similarity of what is held and what was; 0 where nothing was known."""
    if before is None:
        return 0.0
    one, other = dict(now), dict(before)
    most = sum(max(one.get(number, 0), other.get(number, 0)) for number in one.keys() | other.keys())
    both = sum(min(weight, other[number]) for number, weight in one.items() if number in other)
    return round((most - both) / most, 6) if most else 0.0


def identity_after(
    known: Identity, use: IdentityUse | None, modes: Mapping[str, float], decision: str = ""
) -> Identity:
    """Return how an agent uses its identity after a tick; ``use`` is None where an answer was given without a soul."""
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
    """Return how far an agent is from its identity, in [0, 1]: from its soul where it has one, and from its modes."""
    found = [churn_of(_as_held(identity.lately), _as_held(identity.long_run))]
    if identity.parts:
        found.append(1.0 - sum(identity.parts.values()) / len(identity.parts) / MICRO)
    return round(sum(found) / len(found), 6)


def _as_held(modes: Map[str, int]) -> Held:
    return tuple((place, modes[name]) for place, name in _numbered(modes))


def _numbered(names: Iterable[str]) -> Iterable[tuple[int, str]]:
    return ((hashed([name])[0], name) for name in sorted(names))


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
