"""What the regulator adds to the router's weights, agent by agent: taken up live, in the order of the log. Pure.

Offsets, not weights: a setting that an operator changes later still counts, and what is added to it stays as small as
it was. The regulator's bounds hold here once more, so that no event, however it came about, leads a weight out of them.
"""

from collections.abc import Mapping

from schemas.persistent import Map
from schemas.vocabulary.regulator import BOUNDS, FLOORS, Adjusted, Reverted

Offsets = Map[str, float]
"""Name of a weight -> what is added to it."""

NO_OFFSETS: Offsets = Map()


def taken_up(overlays: Map[str, Offsets], agent: str, event: Adjusted | Reverted) -> Map[str, Offsets]:
    """Return the agents' offsets with what an event of the regulator changes in one; an offset of 0 is dropped.

    The change is added to the offset here. The regulator's own begins at 0 again for an agent that it had to drop, and
    taking that over would undo at once what took days.
    """
    if event.parameter not in BOUNDS:
        return overlays
    offsets = overlays.get(agent, NO_OFFSETS)
    offset = round(offsets.get(event.parameter, 0.0) + event.delta, 6)
    if offset:
        return overlays.set(agent, offsets.set(event.parameter, offset))
    if event.parameter not in offsets:
        return overlays
    left = offsets.delete(event.parameter)
    return overlays.set(agent, left) if left else overlays.delete(agent)


def regulated(weights: dict[str, float], offsets: Offsets) -> dict[str, float]:
    """Return the weights with the offsets added, to 6 decimals.

    A weight that a setting puts beyond its bounds stays where it is, or is led back towards them: never farther out.
    """
    if not offsets:
        return weights
    return {**weights, **{name: _led(name, offset, weights) for name, offset in offsets.items()}}


def _led(name: str, offset: float, weights: Mapping[str, float]) -> float:
    least, most = BOUNDS[name]
    if name in FLOORS:
        least = max(least, weights[FLOORS[name]])
    weight = weights[name]
    return round(min(max(weight + offset, min(least, weight)), max(most, weight)), 6)
