"""The regulator's offsets to the router's weights for each agent, applied live in the order of the log. Pure.

The regulator is the actor that slowly corrects an agent's weights, in small steps. Offsets are stored, not weights: so
a setting that an operator changes later still counts, and the offset stays as small as it was. The regulator's bounds
are checked here again, so that no event can move a weight out of them.
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
    """The offsets of an agent's weights; ``heard_ns`` is the time of the regulator's last event about the agent.

    Empty offsets state that nothing is added any more. That differs from having no overlay, where nothing is known.
    """

    offsets: Offsets = NO_OFFSETS
    heard_ns: int = 0


Overlays = Map[str, Overlay]
"""Agent -> the offsets of its weights."""


def with_regulation(
    overlays: Overlays, agent: str, event: RegulatorEvent, now_ns: int, weights: Mapping[str, float], most: int
) -> Overlays:
    """Return the overlays after a regulator's event on an agent; ``weights`` are those of the settings.

    If there are ``most`` of them, some are dropped: first those without offsets, then those without an event for the
    longest time. Only the regulator's events decide that, because every partition consumes them: so all partitions keep
    the same agents, and no two sessions of an agent are scored differently.
    """
    overlay_before = overlays.get(agent)
    offsets = _offsets_after(overlay_before, event, weights)
    if offsets is None:
        return overlays
    overlay = Overlay(offsets, now_ns)
    return with_entry(overlays, agent, overlay, most, lambda each: (bool(each.offsets), each.heard_ns))


def moved_offsets(offsets: Offsets, parameter: str, delta: float, weights: Mapping[str, float]) -> Offsets:
    """Return an agent's offsets after its effective weight ``parameter`` moves by ``delta``; an offset of 0 is left
    out.

    If a setting was changed since, part of an offset may be beyond a bound. That part is dropped: it has no effect, and
    additions to it would have none either. The regulator's own sum cannot replace the offsets kept here: it does not
    know the settings, and starts at 0 again for an agent that it had to drop.
    """
    kept = round(_regulated_weight(parameter, offsets.get(parameter, 0.0), weights) - weights[parameter], 6)
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
    regulated = {name: _regulated_weight(name, offset, weights) for name, offset in offsets.items() if name in weights}
    return {**weights, **regulated}


def offsets_in_force(weights: Mapping[str, float], offsets: Offsets) -> dict[str, float]:
    """Return the offsets that are effective on the weights of the settings, by name, after applying the bounds."""
    regulated = {
        name: round(_regulated_weight(name, offset, weights) - weights[name], 6)
        for name, offset in sorted(offsets.items())
        if name in weights  # else a weight that the router's profile in force (its setting `profile`) does not have
    }
    return {name: offset for name, offset in regulated.items() if offset}


def _offsets_after(
    overlay_before: Overlay | None, event: RegulatorEvent, weights: Mapping[str, float]
) -> Offsets | None:
    """Return an agent's offsets; None where they are unknown, and this event does not state them."""
    if isinstance(event, Adjusted | Reverted) and event.parameter in BOUNDS:
        if event.parameter not in weights:  # a weight that the router's profile in force does not have: no effect
            return overlay_before.offsets if overlay_before else None
        return moved_offsets(
            overlay_before.offsets if overlay_before else NO_OFFSETS, event.parameter, event.delta, weights
        )
    if overlay_before is not None:
        return overlay_before.offsets
    if isinstance(event, RegulatorScheduled) and event.offsets:
        # The agent was dropped here while it was inactive; it is active again.
        return Map({name: offset for name, offset in event.offsets.items() if name in BOUNDS})
    return None


def _regulated_weight(name: str, offset: float, weights: Mapping[str, float]) -> float:
    least, most = BOUNDS[name]
    if name in FLOORS:
        least = max(least, weights[FLOORS[name]])
    weight = weights[name]
    return round(min(max(weight + offset, min(least, weight)), max(most, weight)), 6)
