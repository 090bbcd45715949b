"""What an agent keeps from tick to tick: its working memory, and how it uses its identity. Pure, in millionths.

A tick is a finished exchange, or a step of an external engine.

**Working memory.** An external engine names its content, and churn is 1 - the Jaccard similarity of the sets before and
after. For an exchange here the content is the recalled memories (each weighted by its energy, the strength of its
recall), their terms, the stimulus's terms, and the earlier content at half its weight; churn is 1 - the weighted
Jaccard similarity. Without weights and earlier content, nearly every two exchanges would differ completely, so a change
of topic could not stand out. With weights of 1 and nothing carried over, both measures are the same.

**Identity.** An external engine names the parts of its identity that are written down, and those that it used; drift is
1 - the Jaccard similarity of the two. For an exchange here, drift is the mean of two numbers: the share of the soul
(the text that says who the agent is) that the latest answers did not use, if a model answers with a soul; and how far
the modes and decisions of the latest ticks lie from the agent's long-run averages.
"""

from collections.abc import Mapping

import msgspec

from actors.self_review.similarity import MICRO
from actors.self_review.tick import hash_name
from schemas.persistent import Map
from schemas.vocabulary.responder import IdentityUse

MOST_ENTRIES = 256
"""Most entries of a working memory; those with the highest weights are kept."""

WorkingMemory = tuple[tuple[int, int], ...]
"""Hashes of the content, in ascending order, each with its weight in millionths."""

Content = Mapping[int, int]
"""The hash of each piece of content -> its weight in millionths, in any order."""

_LEAST_WEIGHT = 10_000
"""Weight below which an entry of working memory is dropped, in millionths."""

_LATEST, _LONG_RUN = 300_000, 50_000
"""Weight of the newest tick in the two moving averages of modes, in millionths."""

_LEAST_AVERAGE = 100
"""Average below which a mode is dropped, in millionths."""

_MOST_PARTS = 64
"""Most parts of a soul that are followed."""


class Identity(msgspec.Struct, frozen=True):
    """How an agent uses its identity, in millionths: averages of the use of its soul's parts, and of its modes and
    decisions over the latest ticks (``lately``) and in the long run.
    """

    parts: Map[str, int] = Map()
    lately: Map[str, int] = Map()
    long_run: Map[str, int] = Map()


def content_after(weights: Mapping[str, float], before: Content | None, carry: float) -> Content:
    """Return the content of a working memory after a tick, given names and their weights in [0, 1].

    ``before`` is the earlier content, of whose weight a share of ``carry`` is kept.
    """
    now: dict[int, int] = {}
    for number, weight in zip(map(hash_name, weights), weights.values(), strict=True):
        millionths = round(weight * MICRO)
        if millionths > now.get(number, 0):
            now[number] = millionths
    now = _bounded(now)
    if not carry or before is None:
        return now
    share = round(carry * MICRO)
    kept = {number: left for number, weight in before.items() if (left := weight * share // MICRO) >= _LEAST_WEIGHT}
    for number, weight in now.items():
        if weight >= kept.get(number, 0):
            kept[number] = weight
    return _bounded(kept)


def churn_of(now: Content, before: Content | None) -> float:
    """Return 1 - the weighted Jaccard similarity of the content now and before; 0 if there was none before."""
    if before is None:
        return 0.0
    both = now.keys() & before.keys()
    common = sum(map(min, map(now.__getitem__, both), map(before.__getitem__, both)))
    # The larger of two weights is their sum without the smaller one.
    total = sum(now.values()) + sum(before.values()) - common
    return round((total - common) / total, 6) if total else 0.0


def working_memory_of(content: Content) -> WorkingMemory:
    """Return a content as it is kept from tick to tick."""
    numbers = sorted(content)
    return tuple(zip(numbers, map(content.__getitem__, numbers), strict=True))


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
    found = [churn_of(_as_content(identity.lately), _as_content(identity.long_run))]
    if identity.parts:
        found.append(1.0 - sum(identity.parts.values()) / len(identity.parts) / MICRO)
    return round(sum(found) / len(found), 6)


def _as_content(modes: Map[str, int]) -> Content:
    return {hash_name(name): weight for name, weight in modes.items()}


def _averaged(known: Map[str, int], active: Mapping[str, int], share: int) -> Map[str, int]:
    averages = {name: _moved_towards(known.get(name, 0), active.get(name, 0), share) for name in {*known, *active}}
    return Map({name: averages[name] for name in sorted(averages) if averages[name] >= _LEAST_AVERAGE})


def _moved_towards(before: int, now: int, share: int) -> int:
    return before + (now - before) * share // MICRO


def _bounded(content: dict[int, int]) -> dict[int, int]:
    """Return the entries with the highest weights: ``MOST_ENTRIES`` at most, and none below ``_LEAST_WEIGHT``."""
    kept = {number: weight for number, weight in content.items() if weight >= _LEAST_WEIGHT}
    if len(kept) <= MOST_ENTRIES:
        return kept
    return dict(sorted(kept.items(), key=lambda each: (-each[1], each[0]))[:MOST_ENTRIES])
