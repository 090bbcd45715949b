"""What drift keeps of an agent, and what follows from it: whether it is idle, tired, and what it leaves alone. Pure."""

import msgspec

from actors.drift.settings import DriftSettings
from schemas.persistent import Map
from schemas.vocabulary.drift import Kind
from schemas.vocabulary.memory import MemoryWandered

_NS_PER_MS = 1_000_000
_DECIMALS = 6


class Asked(msgspec.Struct, frozen=True):
    """A model that has not put the thought into words yet.

    ``request`` is the id of the event that asks it, ``session`` whose words it is asked about, ``upon`` what they are.
    """

    request: str
    session: str
    upon: MemoryWandered


class Cycle(msgspec.Struct, frozen=True):
    """A drift under way, by the id of its ``drift.started``; what the composer would make of it; who was asked."""

    started: str
    kind: Kind
    asked: Asked | None = None


class Spent(msgspec.Struct, frozen=True):
    """Activation that a thought took, and when."""

    at_ns: int
    activation: float


class Mind(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept of an agent.

    ``pending`` are its open exchanges. ``timer`` is the subject of the event by which the
    clock will wake it, empty for none. ``spent`` are its thoughts of the fatigue's
    window, oldest first, ``resting`` the concepts that it began with lately, by their ids, and when. Words it has only
    while a model is asked.
    """

    pending: Map[str, bool] = Map()
    timer: str = ""
    cycle: Cycle | None = None
    spent: tuple[Spent, ...] = ()
    resting: Map[str, int] = Map()


def fatigue(mind: Mind, now_ns: int, settings: DriftSettings) -> float:
    """Return the activation of the thoughts that still tire."""
    window_ns = settings.fatigue_window_ms * _NS_PER_MS
    return round(sum(each.activation for each in mind.spent if now_ns - each.at_ns < window_ns), _DECIMALS)


def is_tired(mind: Mind, now_ns: int, settings: DriftSettings) -> bool:
    """Whether the budget is spent."""
    return fatigue(mind, now_ns, settings) >= settings.fatigue_budget


def resting(mind: Mind, now_ns: int, settings: DriftSettings) -> tuple[str, ...]:
    """Return the concepts that are not to be begun with, sorted."""
    cooldown_ns = settings.cooldown_ms * _NS_PER_MS
    return tuple(sorted(seed for seed, since_ns in mind.resting.items() if now_ns - since_ns < cooldown_ns))


def spending(mind: Mind, activation: float, now_ns: int, settings: DriftSettings) -> Mind:
    """Return the mind after a thought."""
    window_ns = settings.fatigue_window_ms * _NS_PER_MS
    kept = tuple(each for each in mind.spent if now_ns - each.at_ns < window_ns)
    return msgspec.structs.replace(mind, spent=(*kept, Spent(now_ns, activation)))


def laying_to_rest(mind: Mind, seed: str, now_ns: int, settings: DriftSettings) -> Mind:
    """Return the mind after a concept was begun with; those that have rested are dropped."""
    still = resting(mind, now_ns, settings)
    rests = Map({each: mind.resting[each] for each in still})
    return msgspec.structs.replace(mind, resting=rests.set(seed, now_ns) if seed else rests)
