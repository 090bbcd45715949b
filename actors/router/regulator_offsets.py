"""The regulator's offsets to the router's weights for each agent, applied live in the order of the log. Pure.

Offsets are stored, not weights: so a setting that an operator changes later still counts, and the offset stays as small
as it was. The regulator's bounds are checked here again, so that no event can move a weight out of them.
"""

from collections.abc import Mapping

import msgspec

from schemas.persistent import Map, with_entry
from schemas.vocabulary.regulator import BOUNDS, FLOORS, Adjusted, CycleCompleted, RegulatorScheduled, Reverted

Offsets = Map[str, float]
"""Name of a weight -> its offset."""

NO_OFFSETS: Offsets = Map()

RegulatorEvent = Adjusted | Reverted | CycleCompleted | RegulatorScheduled
"""The regulator's events about an agent."""


class Overlay(msgspec.Struct, frozen=True):
    """The offsets of an agent's weights, and the time of the regulator's last event about the agent.

    Empty offsets state that nothing is added any more. That differs from having no overlay, where nothing is known.
    """

    offsets: Offsets = NO_OFFSETS
    heard_ns: int = 0


Overlays = Map[str, Overlay]
"""Agent -> the offsets of its weights."""


def with_regulation(
    overlays: Overlays, agent: str, word: RegulatorEvent, now_ns: int, weights: Mapping[str, float], most: int
) -> Overlays:
    """Return the overlays after a regulator's event on an agent; ``weights`` are those of the settings.

    If there are ``most`` of them, those without an event for the longest time are dropped. Only the regulator's events
    decide that, because every partition consumes them: so all partitions keep the same agents, and no two sessions of
    an agent are scored differently.
    """
    known = overlays.get(agent)
    offsets = _offsets_after(known, word, weights)
    if offsets is None:
        return overlays
    overlay = Overlay(offsets, now_ns)
    return with_entry(overlays, agent, overlay, most, lambda each: (bool(each.offsets), each.heard_ns))


def moved_offsets(offsets: Offsets, parameter: str, delta: float, weights: Mapping[str, float]) -> Offsets:
    """Return an agent's offsets after its effective weight moves by ``delta``; an offset of 0 is left out.

    If a setting was changed since, part of an offset may be beyond a bound. That part is dropped: it has no effect, and
    additions to it would have none either. The regulator's own sum cannot replace the offsets kept here: it does not
    know the settings, and starts at 0 again for an agent that it had to drop.
    """
    kept = round(_led(parameter, offsets.get(parameter, 0.0), weights) - weights[parameter], 6)
    offset = round(kept + delta, 6)
    if offset:
        return offsets.set(parameter, offset)
    return offsets.delete(parameter) if parameter in offsets else offsets


def regulated_weights(weights: dict[str, float], offsets: Offsets) -> dict[str, float]:
    """Return the weights with the offsets added, to 6 decimals.

    A weight that a setting puts beyond its bounds stays there or moves back towards them, never farther out.
    """
    if not offsets:
        return weights
    led = {name: _led(name, offset, weights) for name, offset in offsets.items() if name in weights}
    return {**weights, **led}


def offsets_in_force(weights: Mapping[str, float], offsets: Offsets) -> dict[str, float]:
    """Return the offsets that are effective on the weights of the settings, by name, after applying the bounds."""
    led = {
        name: round(_led(name, offset, weights) - weights[name], 6) + 0.0
        for name, offset in sorted(offsets.items())
        if name in weights  # else another profile's: it waits for that one
    }
    return {name: offset for name, offset in led.items() if offset}


def _offsets_after(known: Overlay | None, word: RegulatorEvent, weights: Mapping[str, float]) -> Offsets | None:
    """Return an agent's offsets; None where they are unknown, and this event does not state them."""
    if isinstance(word, Adjusted | Reverted) and word.parameter in BOUNDS:
        if word.parameter not in weights:  # another profile's: it waits for that one
            return known.offsets if known else None
        return moved_offsets(known.offsets if known else NO_OFFSETS, word.parameter, word.delta, weights)
    if known is not None:
        return known.offsets
    if isinstance(word, RegulatorScheduled) and word.offsets:
        # The agent was inactive and was dropped here; it is active again.
        return Map({name: offset for name, offset in word.offsets.items() if name in BOUNDS})
    return None


def _led(name: str, offset: float, weights: Mapping[str, float]) -> float:
    least, most = BOUNDS[name]
    if name in FLOORS:
        least = max(least, weights[FLOORS[name]])
    weight = weights[name]
    return round(min(max(weight + offset, min(least, weight)), max(most, weight)), 6)
