"""What drift keeps of an agent, and what follows from it: whether it is idle, tired, and what it leaves alone. Pure."""

import msgspec

from actors.drift.settings import DriftSettings
from schemas.persistent import Map, without_oldest
from schemas.vocabulary.drift import Kind, Skip
from schemas.vocabulary.memory import MemoryWandered

_NS_PER_MS = 1_000_000
_DECIMALS = 6
_MOST_FRUITLESS = 20
"""Doublings of a pause: the shortest interval there is comes to more than a day with them."""

_MOST_KEPT = 256
"""Resting concepts, and thoughts that tire: far more than there are of either within the settings' default times."""


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


class Thought(msgspec.Struct, frozen=True):
    """A thought that was had: the concept it began with, and the episode it rests on, by their ids in memory."""

    seed: str
    episode: str


class Mind(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept of an agent.

    ``pending`` are its open exchanges. ``timer`` is the subject of the event by which the clock will wake it, empty for
    none, ``late`` whether that is later than usual. ``spent`` are its thoughts of the fatigue's window, oldest first,
    ``resting`` the concepts that it began with lately, by their ids, and when. ``had`` are the thoughts that it does
    not have again, oldest first, ``fruitless`` the drifts in a row that led to nothing new. ``seen_ns`` is when
    anything was last heard of the agent. Words it has only while a model is asked.
    """

    pending: Map[str, bool] = Map()
    timer: str = ""
    late: bool = False
    cycle: Cycle | None = None
    spent: tuple[Spent, ...] = ()
    resting: Map[str, int] = Map()
    had: tuple[Thought, ...] = ()
    fruitless: int = 0
    seen_ns: int = 0


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


def first_waking_ms(mind: Mind, now_ns: int, settings: DriftSettings) -> int | None:
    """Return how long until a concept has rested, in milliseconds, 0 where one just has; None where none rests."""
    if not mind.resting:
        return None
    left_ns = min(mind.resting.values()) + settings.cooldown_ms * _NS_PER_MS - now_ns
    return max(0, -(-left_ns // _NS_PER_MS))


def nothing_in(mind: Mind, upon: MemoryWandered, settings: DriftSettings) -> Skip | None:
    """Return why what memory came upon is no thought; None: it is one."""
    if upon.reason:
        return upon.reason
    if upon.strategy is None or upon.activation < settings.threshold:
        return "weak"
    return "repeated" if Thought(upon.seed, upon.episode) in mind.had else None


def thinking(mind: Mind, thought: Thought, activation: float, now_ns: int, settings: DriftSettings) -> Mind:
    """Return the mind after a thought: it tires, and is not had again for a while."""
    window_ns = settings.fatigue_window_ms * _NS_PER_MS
    kept = tuple(each for each in mind.spent if now_ns - each.at_ns < window_ns)
    had = (*mind.had, thought)[-settings.thoughts_kept :] if settings.thoughts_kept else ()
    return msgspec.structs.replace(mind, spent=(*kept, Spent(now_ns, activation))[-_MOST_KEPT:], had=had, fruitless=0)


def finding_nothing(mind: Mind, reason: Skip) -> Mind:
    """Return the mind after a drift that led to nothing new."""
    late = mind.fruitless > 0 or reason == "no_seed"
    return msgspec.structs.replace(mind, fruitless=min(mind.fruitless + 1, _MOST_FRUITLESS), late=late)


def laying_to_rest(mind: Mind, seed: str, now_ns: int, settings: DriftSettings) -> Mind:
    """Return the mind after a concept was begun with; those that have rested are dropped."""
    still = resting(mind, now_ns, settings)
    rests = Map({each: mind.resting[each] for each in still})
    if len(rests) >= _MOST_KEPT:
        rests = without_oldest(rests, lambda since_ns: since_ns)
    return msgspec.structs.replace(mind, resting=rests.set(seed, now_ns) if seed else rests)
