"""What the regulator knows of one agent, and what may be read from it. Pure."""

from collections.abc import Mapping

import msgspec

from actors.regulator.judging import Trial
from actors.regulator.pressures import Answer, Opinion
from actors.regulator.settings import RegulatorSettings
from actors.regulator.window import Slices
from schemas.persistent import Map
from schemas.vocabulary.regulator import BOUNDS, FLOORS, PressureName

_NS_PER_MS = 1_000_000


class Move(msgspec.Struct, frozen=True):
    """A change of a weight, by its size."""

    at_ns: int
    size: float


class Loop(msgspec.Struct, frozen=True, kw_only=True):
    """What the regulator knows of an agent.

    ``weights`` are those in force with its latest decision, as far as they concern regulation. ``scheduled``: a cycle
    is due. ``offsets`` are what regulation adds to the settings, ``in_force`` what its latest decision says that bounds
    have left of them (None: it does not say); ``changed_ns`` when a weight was changed last;
    ``moves`` the changes of the last day; ``factors`` what the next change of a weight is multiplied by, where not 1.
    ``causes`` are the pressures that the offsets answer; ``pressed_ns`` when a weight was last called for in a
    direction; ``led_ns`` when it was last moved for a pressure, or moved back; ``returned`` how often its fading
    brought the pressure back; ``resting_ns`` when a whole series for a pressure was undone. ``consulted_ns`` is when a
    weight was changed last because of reflection, ``seen_ns`` when anything was last heard of the agent.
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
    """Return the least and the greatest value that a weight may be led to."""
    least, most = BOUNDS[parameter]
    floor = weights.get(FLOORS.get(parameter, ""))
    return (least if floor is None else max(least, floor)), most


def is_ours(loop: Loop, parameter: str) -> bool:
    """Whether a weight is there, and lies within its limits.

    Beyond them an operator has set it, and the router's present profile may not have it. Then it is left alone: what is
    to be undone waits until it is back.
    """
    weight = loop.weights.get(parameter)
    least, most = limits(parameter, loop.weights)
    return weight is not None and least <= weight <= most


def is_cooling(loop: Loop, parameter: str, now_ns: int, settings: RegulatorSettings) -> bool:
    """Whether a weight was changed too lately to be changed again."""
    changed_ns = loop.changed_ns.get(parameter)
    return changed_ns is not None and now_ns - changed_ns < settings.cooldown_ms * _NS_PER_MS


def is_resting(loop: Loop, pressure: PressureName, parameter: str, now_ns: int, settings: RegulatorSettings) -> bool:
    """Whether a weight was moved for a pressure in vain lately."""
    since_ns = loop.resting_ns.get(rest_key(pressure, parameter))
    return since_ns is not None and now_ns - since_ns < settings.rest_ms * _NS_PER_MS


def spent(loop: Loop, now_ns: int, settings: RegulatorSettings) -> float:
    """Return what of the day's allowance is used up."""
    return sum(move.size for move in loop.moves if now_ns - move.at_ns < settings.day_ms * _NS_PER_MS)


def trial_of(loop: Loop, parameter: str) -> Trial | None:
    """Return what is on trial of a weight."""
    return next((trial for trial in loop.trials if trial.parameter == parameter), None)


def direction(answer: Answer) -> str:
    """Name a weight with a direction, as ``Loop.pressed_ns`` does."""
    parameter, sign = answer
    return f"{'+' if sign > 0 else '-'}{parameter}"


def rest_key(pressure: PressureName, parameter: str) -> str:
    """Name a weight as the answer to a pressure, as ``Loop.resting_ns`` does."""
    return f"{pressure} {parameter}"
