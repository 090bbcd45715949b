"""An agent's biases: by bias tag, the loop families that showed it lately. Pure.

A *loop* is one pass of a deliberation, such as a model's answer; its *family* is that loop and its reruns. A *bias tag*
names a fault that those who score a loop (its critics) saw in it, such as ``overconfidence``. A bias that too many
families show is an echo, and ends them. Distinct families are counted: several reruns of one deliberation count once. A
loop that was ended because of a bias does not count for that bias. Otherwise each further attempt would prolong the
echo, and it would never end.
"""

from collections.abc import Iterable, Mapping

import msgspec

from actors.guardrails.settings import GuardrailsSettings
from schemas.persistent import Map

_NS_PER_MS = 1_000_000


class Sighting(msgspec.Struct, frozen=True):
    """A loop family that showed a bias, and when the latest of its loops with it was judged."""

    family: str
    at_ns: int


class Biases(msgspec.Struct, frozen=True):
    """The biases of an agent: by tag, the families that showed it, the latest last."""

    seen: Map[str, tuple[Sighting, ...]] = Map()


def count_families(
    biases: Biases, tags: Iterable[str], family: str, now_ns: int, settings: GuardrailsSettings
) -> dict[str, int]:
    """Return, for each tag of a loop, how many families showed it within ``bias_window_ms``, its own included."""
    return {tag: len(_others(biases, tag, family, now_ns, settings)) + 1 for tag in sorted(set(tags))}


def repeated_tags(counted: Mapping[str, int], settings: GuardrailsSettings) -> tuple[str, ...]:
    """Return the tags that too many families showed, given how many did (``count_families``)."""
    return tuple(tag for tag, count in counted.items() if count >= settings.bias_threshold)


def with_loop(biases: Biases, tags: Iterable[str], family: str, now_ns: int, settings: GuardrailsSettings) -> Biases:
    """Return the biases after a loop that showed these tags, without sightings that are too old or too many."""
    seen = biases.seen
    for tag in tags:
        sightings = (*_others(biases, tag, family, now_ns, settings), Sighting(family, now_ns))
        seen = seen.set(tag, sightings[-settings.bias_loops :])
    return Biases(_bounded(seen, now_ns, settings))


def _others(biases: Biases, tag: str, family: str, now_ns: int, settings: GuardrailsSettings) -> tuple[Sighting, ...]:
    """Return the other families that showed a bias within the window."""
    since_ns = now_ns - settings.bias_window_ms * _NS_PER_MS
    sightings = biases.seen.get(tag, ())
    return tuple(each for each in sightings if each.at_ns > since_ns and each.family != family)


def _bounded(
    seen: Map[str, tuple[Sighting, ...]], now_ns: int, settings: GuardrailsSettings
) -> Map[str, tuple[Sighting, ...]]:
    """Return the biases without those not shown within the window, and without the oldest of too many."""
    since_ns = now_ns - settings.bias_window_ms * _NS_PER_MS
    by_age = sorted((sightings[-1].at_ns, tag) for tag, sightings in seen.items())
    for index, (at_ns, tag) in enumerate(by_age):
        if at_ns <= since_ns or index < len(by_age) - settings.bias_tags:
            seen = seen.delete(tag)
    return seen
