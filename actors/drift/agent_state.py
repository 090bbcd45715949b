"""What drift keeps of an agent: whether it is idle or fatigued, and which concepts are in cooldown. Pure.

A *drift* is an idle agent's attempt at a thought. It starts from a concept (a term in memory); from there activation
spreads to concepts that occurred with it, and an episode (a remembered exchange) with them is the thought's subject.
"""

import msgspec

from actors.drift.settings import DriftSettings
from schemas.persistent import Map, without_oldest
from schemas.vocabulary.drift import Kind, Skip
from schemas.vocabulary.memory import MemoryWandered

_NS_PER_MS = 1_000_000
_DECIMALS = 6
_MOST_FRUITLESS = 20
"""Most doublings of a pause: with these, even the shortest interval of the settings exceeds a day."""

_MOST_KEPT = 256
"""Most concepts in cooldown, and most thoughts that count for fatigue; the default settings stay far below it."""


class SynthesisRequest(msgspec.Struct, frozen=True):
    """A request to a model for the text of a thought.

    ``request`` is the id of the event that asks, ``session`` the session whose text is shown, ``upon`` what memory
    found, which the thought is about. ``answer`` is what the model wrote, and ``source`` the id of the event that has
    it, until reflex has read it.
    """

    request: str
    session: str
    upon: MemoryWandered
    answer: str = ""
    source: str = ""


class Cycle(msgspec.Struct, frozen=True):
    """A running drift: the id of its ``drift.started``, the kind of its thought, and the request to a model, if any."""

    started: str
    kind: Kind
    asked: SynthesisRequest | None = None


class SpentActivation(msgspec.Struct, frozen=True):
    """The activation of a past thought, and when it was; it counts for fatigue."""

    at_ns: int
    activation: float


class Thought(msgspec.Struct, frozen=True):
    """A past thought: its first concept (``seed``) and its episode, by their ids in memory."""

    seed: str
    episode: str


class AgentState(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept of an agent.

    Attributes:
        pending: Its open exchanges.
        timer: Public subject of the event that set its pending timer; empty: no timer is pending.
        late: Whether that timer is later than usual.
        cycle: The drift that is running, if any.
        spent: Its thoughts within the fatigue window, oldest first.
        resting: The concepts in cooldown, by their ids, and when a drift started from each.
        had: Its latest thoughts, oldest first; none of them is repeated.
        fruitless: Drifts in a row that led to nothing new.
        seen_ns: When the agent's last message was stored.

    Text is kept only while a model is asked.
    """

    pending: Map[str, bool] = Map()
    timer: str = ""
    late: bool = False
    cycle: Cycle | None = None
    spent: tuple[SpentActivation, ...] = ()
    resting: Map[str, int] = Map()
    had: tuple[Thought, ...] = ()
    fruitless: int = 0
    seen_ns: int = 0


def fatigue(agent: AgentState, now_ns: int, settings: DriftSettings) -> float:
    """Return the sum of the activations of the thoughts within the fatigue window."""
    window_ns = settings.fatigue_window_ms * _NS_PER_MS
    return round(sum(each.activation for each in agent.spent if now_ns - each.at_ns < window_ns), _DECIMALS)


def is_fatigued(agent: AgentState, now_ns: int, settings: DriftSettings) -> bool:
    """Whether the agent has used up its fatigue budget."""
    return fatigue(agent, now_ns, settings) >= settings.fatigue_budget


def resting_concepts(agent: AgentState, now_ns: int, settings: DriftSettings) -> tuple[str, ...]:
    """Return the concepts in cooldown, sorted."""
    cooldown_ns = settings.cooldown_ms * _NS_PER_MS
    return tuple(sorted(seed for seed, since_ns in agent.resting.items() if now_ns - since_ns < cooldown_ns))


def shortest_cooldown_left_ms(agent: AgentState, now_ns: int, settings: DriftSettings) -> int | None:
    """Return the milliseconds until the first cooldown is over, 0 if one just ended; None if there is none."""
    if not agent.resting:
        return None
    left_ns = min(agent.resting.values()) + settings.cooldown_ms * _NS_PER_MS - now_ns
    return max(0, -(-left_ns // _NS_PER_MS))


def reason_to_skip(agent: AgentState, wandered: MemoryWandered, settings: DriftSettings) -> Skip | None:
    """Return the reason to skip what memory found; None: it becomes a thought.

    Without a ``strategy``, no strategy has found a first concept, so nothing was activated.
    """
    if wandered.reason:
        return wandered.reason
    if wandered.strategy is None or wandered.activation < settings.threshold:
        return "weak"
    return "repeated" if Thought(wandered.seed, wandered.episode) in agent.had else None


def with_thought(
    agent: AgentState, thought: Thought, activation: float, now_ns: int, settings: DriftSettings
) -> AgentState:
    """Return the agent's state after a thought, which counts for fatigue and is not repeated for a while."""
    window_ns = settings.fatigue_window_ms * _NS_PER_MS
    kept = tuple(each for each in agent.spent if now_ns - each.at_ns < window_ns)
    had = (*agent.had, thought)[-settings.thoughts_kept :] if settings.thoughts_kept else ()
    return msgspec.structs.replace(
        agent, spent=(*kept, SpentActivation(now_ns, activation))[-_MOST_KEPT:], had=had, fruitless=0
    )


def with_skip(agent: AgentState, reason: Skip) -> AgentState:
    """Return the agent's state after a drift that led to nothing new."""
    late = agent.fruitless > 0 or reason == "no_seed"
    return msgspec.structs.replace(agent, fruitless=min(agent.fruitless + 1, _MOST_FRUITLESS), late=late)


def with_resting(agent: AgentState, seed: str, now_ns: int, settings: DriftSettings) -> AgentState:
    """Return the agent's state after a drift started from a concept; finished cooldowns are dropped."""
    still = resting_concepts(agent, now_ns, settings)
    resting = Map({each: agent.resting[each] for each in still})
    if len(resting) >= _MOST_KEPT:
        resting = without_oldest(resting, lambda since_ns: since_ns)
    return msgspec.structs.replace(agent, resting=resting.set(seed, now_ns) if seed else resting)
