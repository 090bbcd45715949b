"""An agent's biases: in which of its loops each came up lately. Pure.

Distinct loops count: a bias that a loop shows twice counts once, and so does a loop that is told of twice.
"""

from collections.abc import Iterable, Mapping

import msgspec

from actors.guardrails.settings import GuardrailsSettings
from schemas.persistent import Map

_NS_PER_MS = 1_000_000


class Sighting(msgspec.Struct, frozen=True):
    """A loop that showed a bias, and when it was judged."""

    loop_id: str
    at_ns: int


class Biases(msgspec.Struct, frozen=True):
    """The biases of an agent: by tag, the loops that showed it, the latest last."""

    seen: Map[str, tuple[Sighting, ...]] = Map()


def counts(
    biases: Biases, tags: Iterable[str], loop_id: str, now_ns: int, settings: GuardrailsSettings
) -> dict[str, int]:
    """Return in how many loops of the window each of a loop's tags came up, that loop among them."""
    return {tag: len(_others(biases, tag, loop_id, now_ns, settings)) + 1 for tag in sorted(set(tags))}


def repeated(counted: Mapping[str, int], settings: GuardrailsSettings) -> tuple[str, ...]:
    """Return the tags that came up too often."""
    return tuple(tag for tag, count in counted.items() if count >= settings.bias_threshold)


def with_loop(biases: Biases, tags: Iterable[str], loop_id: str, now_ns: int, settings: GuardrailsSettings) -> Biases:
    """Return the biases after a loop that showed these: without what is out of the window, and within the bounds."""
    seen = biases.seen
    for tag in tags:
        sightings = (*_others(biases, tag, loop_id, now_ns, settings), Sighting(loop_id, now_ns))
        seen = seen.set(tag, sightings[-settings.bias_loops :])
    return Biases(_bounded(seen, now_ns, settings))


def _others(biases: Biases, tag: str, loop_id: str, now_ns: int, settings: GuardrailsSettings) -> tuple[Sighting, ...]:
    since_ns = now_ns - settings.bias_window_ms * _NS_PER_MS
    sightings = biases.seen.get(tag, ())
    return tuple(each for each in sightings if each.at_ns > since_ns and each.loop_id != loop_id)


def _bounded(
    seen: Map[str, tuple[Sighting, ...]], now_ns: int, settings: GuardrailsSettings
) -> Map[str, tuple[Sighting, ...]]:
    since_ns = now_ns - settings.bias_window_ms * _NS_PER_MS
    last = sorted((sightings[-1].at_ns, tag) for tag, sightings in seen.items())
    for place, (at_ns, tag) in enumerate(last):
        if at_ns <= since_ns or place < len(last) - settings.bias_tags:
            seen = seen.delete(tag)
    return seen
