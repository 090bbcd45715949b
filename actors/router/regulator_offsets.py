"""What the regulator adds to the router's weights, agent by agent: taken up live, in the order of the log. Pure.

Offsets, not weights: a setting that an operator changes later still counts, and what is added to it stays as small as
it was. The regulator's bounds hold here once more, so that no event, however it came about, leads a weight out of them.
"""

from collections.abc import Mapping

import msgspec

from schemas.persistent import Map, without_oldest
from schemas.vocabulary.regulator import BOUNDS, FLOORS, Adjusted, CycleCompleted, RegulatorScheduled, Reverted

Offsets = Map[str, float]
"""Name of a weight -> what is added to it."""

NO_OFFSETS: Offsets = Map()

RegulatorEvent = Adjusted | Reverted | CycleCompleted | RegulatorScheduled
"""What the regulator says of an agent."""


class Overlay(msgspec.Struct, frozen=True):
    """What is added to an agent's weights, and when the regulator last spoke of the agent.

    Without offsets it says that nothing is added any more, which is not the same as not to know.
    """

    offsets: Offsets = NO_OFFSETS
    heard_ns: int = 0


Overlays = Map[str, Overlay]
"""Agent -> what is added to its weights."""


def with_regulation(
    overlays: Overlays, agent: str, word: RegulatorEvent, now_ns: int, weights: Mapping[str, float], most: int
) -> Overlays:
    """Return the overlays after the regulator's word on an agent; ``weights`` are those of the settings.

    Where there are ``most`` of them, those that it has not spoken of for longest make room. By its word alone, which
    every partition hears, so that all keep the same agents and no two sessions of one are weighed differently.
    """
    known = overlays.get(agent)
    offsets = _offsets_after(known, word, weights)
    if offsets is None:
        return overlays
    if known is None and len(overlays) >= most:
        overlays = without_oldest(overlays, lambda each: (bool(each.offsets), each.heard_ns))
    return overlays.set(agent, Overlay(offsets, now_ns))


def moved_offsets(offsets: Offsets, parameter: str, delta: float, weights: Mapping[str, float]) -> Offsets:
    """Return an agent's offsets after its weight in force moves by ``delta``; an offset of 0 is left out.

    What of an offset lies beyond a bound, because a setting was changed since, is given up: it moves nothing, and
    neither would anything that were added to it or taken from it. The regulator's own sum cannot stand in for what is
    kept here: it knows no settings, and begins at 0 again for an agent that it had to drop.
    """
    kept = round(_led(parameter, offsets.get(parameter, 0.0), weights) - weights[parameter], 6)
    offset = round(kept + delta, 6)
    if offset:
        return offsets.set(parameter, offset)
    return offsets.delete(parameter) if parameter in offsets else offsets


def regulated_weights(weights: dict[str, float], offsets: Offsets) -> dict[str, float]:
    """Return the weights with the offsets added, to 6 decimals.

    A weight that a setting puts beyond its bounds stays where it is, or is led back towards them: never farther out.
    """
    if not offsets:
        return weights
    led = {name: _led(name, offset, weights) for name, offset in offsets.items() if name in weights}
    return {**weights, **led}


def offsets_in_force(weights: Mapping[str, float], offsets: Offsets) -> dict[str, float]:
    """Return what of the offsets is in force on weights of the settings, by name: what bounds have left of them."""
    led = {
        name: round(_led(name, offset, weights) - weights[name], 6) + 0.0
        for name, offset in sorted(offsets.items())
        if name in weights  # else another profile's: it waits for that one
    }
    return {name: offset for name, offset in led.items() if offset}


def _offsets_after(known: Overlay | None, word: RegulatorEvent, weights: Mapping[str, float]) -> Offsets | None:
    """Return an agent's offsets; None where nothing is known, and nothing said, of what is added to its weights."""
    if isinstance(word, Adjusted | Reverted) and word.parameter in BOUNDS:
        if word.parameter not in weights:  # another profile's: it waits for that one
            return known.offsets if known else None
        return moved_offsets(known.offsets if known else NO_OFFSETS, word.parameter, word.delta, weights)
    if known is not None:
        return known.offsets
    if isinstance(word, RegulatorScheduled) and word.offsets:
        # The agent was dropped here for its silence, and is back.
        return Map({name: offset for name, offset in word.offsets.items() if name in BOUNDS})
    return None


def _led(name: str, offset: float, weights: Mapping[str, float]) -> float:
    least, most = BOUNDS[name]
    if name in FLOORS:
        least = max(least, weights[FLOORS[name]])
    weight = weights[name]
    return round(min(max(weight + offset, min(least, weight)), max(most, weight)), 6)
