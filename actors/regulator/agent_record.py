"""The record that the regulator keeps of one agent, and queries on it. Pure.

Once a day, in a *cycle*, the regulator looks at an agent's routing decisions. A *pressure* is a fault of theirs that a
weight of the router may correct. An *adjustment* changes a weight a little, in one step or a *series* of steps; it is
on *trial* until its effect is judged, and undone by a *revert* if it did not help. The *offset* of a weight is the sum
of its changes; it *fades* by steps that take it back. ``parameter`` is always the name of a weight.
"""

from collections.abc import Mapping

import msgspec

from actors.regulator.decision_window import Slices
from actors.regulator.pressures import Opinion, Remedy
from actors.regulator.settings import RegulatorSettings
from actors.regulator.trial_outcome import Trial
from schemas.persistent import Map
from schemas.vocabulary.regulator import BOUNDS, FLOORS, PressureName

_NS_PER_MS = 1_000_000


class Move(msgspec.Struct, frozen=True):
    """A change of a weight: when (Unix nanoseconds), and how large."""

    at_ns: int
    size: float


class AgentRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What the regulator keeps of an agent.

    Attributes:
        slices: Counts of its decisions, by slices of time.
        weights: The weights of its latest decision that regulation may change, and those that limit them.
        scheduled: Whether a cycle is scheduled.
        opinion: Reflection's latest conclusion from a model's second opinions on past decisions.
        offsets: What regulation adds to the weights of the settings.
        in_force: The part of the offsets that is within bounds, as the latest decision records it; None: not recorded.
        trials: Adjustments that are not judged yet.
        changed_ns: By weight, when it was last changed.
        moves: The changes of the last day.
        factors: By weight, the factor of its next change, if that is not 1.
        causes: By weight, the pressure that its offset corrects.
        pressed_ns: By weight and direction, when a pressure last asked for such a change.
        led_ns: By weight, when a pressure last changed it, or such a change was last undone.
        returned: By weight, how often fading it brought the pressure back.
        resting_ns: By weight and pressure, when a whole series was undone.
        consulted_ns: When a weight was last changed because of reflection.
        seen_ns: When the agent's last message was stored.
    """

    slices: Slices = ()
    weights: Map[str, float] = Map()
    scheduled: bool = False
    opinion: Opinion | None = None
    offsets: Map[str, float] = Map()
    in_force: Map[str, float] | None = None
    trials: tuple[Trial, ...] = ()
    changed_ns: Map[str, int] = Map()
    moves: tuple[Move, ...] = ()
    factors: Map[str, float] = Map()
    causes: Map[str, PressureName] = Map()
    pressed_ns: Map[str, int] = Map()
    led_ns: Map[str, int] = Map()
    returned: Map[str, int] = Map()
    resting_ns: Map[str, int] = Map()
    consulted_ns: int = 0
    seen_ns: int = 0


def limits(parameter: str, weights: Mapping[str, float]) -> tuple[float, float]:
    """Return the least and the greatest value that regulation may give a weight."""
    least, most = BOUNDS[parameter]
    floor = weights.get(FLOORS.get(parameter, ""))
    return (least if floor is None else max(least, floor)), most


def is_within_limits(record: AgentRecord, parameter: str) -> bool:
    """Whether the router's profile has a weight, and the weight lies within its limits.

    If it lies beyond them, an operator has set it. A weight that is missing or beyond its limits is left alone, and a
    revert waits until it is back.
    """
    weight = record.weights.get(parameter)
    least, most = limits(parameter, record.weights)
    return weight is not None and least <= weight <= most


def is_cooling(record: AgentRecord, parameter: str, now_ns: int, settings: RegulatorSettings) -> bool:
    """Whether a weight was changed too recently to be changed again."""
    changed_ns = record.changed_ns.get(parameter)
    return changed_ns is not None and now_ns - changed_ns < settings.cooldown_ms * _NS_PER_MS


def is_resting(
    record: AgentRecord, pressure: PressureName, parameter: str, now_ns: int, settings: RegulatorSettings
) -> bool:
    """Whether a weight was recently moved for a pressure without success."""
    since_ns = record.resting_ns.get(rest_key(pressure, parameter))
    return since_ns is not None and now_ns - since_ns < settings.rest_ms * _NS_PER_MS


def spent_today(record: AgentRecord, now_ns: int, settings: RegulatorSettings) -> float:
    """Return the sum of all changes within the last ``day_ms``; ``per_day`` is its limit."""
    return sum(move.size for move in record.moves if now_ns - move.at_ns < settings.day_ms * _NS_PER_MS)


def trial_of(record: AgentRecord, parameter: str) -> Trial | None:
    """Return the trial of a weight, if there is one."""
    return next((trial for trial in record.trials if trial.parameter == parameter), None)


def direction(remedy: Remedy) -> str:
    """Return the key of ``AgentRecord.pressed_ns``: a weight with a direction."""
    parameter, sign = remedy
    return f"{'+' if sign > 0 else '-'}{parameter}"


def rest_key(pressure: PressureName, parameter: str) -> str:
    """Return the key of ``AgentRecord.resting_ns``: a weight, and the pressure that it was to correct."""
    return f"{pressure} {parameter}"
