"""The router's state machine: which mode an exchange is answered in.

input.received          the text is kept until its mode is selected or its exchange ends
appraisal.completed     the topic is kept with the text
arbiter.escalated       -> router.mode_selected, once, for an exchange whose text is kept
router.mode_selected    the text is dropped; the topic's streak of low confidence grows or ends
response.emitted        the text is dropped; the session's memory learns what was answered
router.configured       the settings from here on
"""

import msgspec

from actors.router.selection import UNCLASSIFIED, Context, observe, select_mode
from actors.router.settings import RouterSettings
from schemas.actor import Message, settings_of
from schemas.event import Event
from schemas.persistent import Generations, Map
from schemas.vocabulary.appraisal import AppraisalCompleted
from schemas.vocabulary.arbiter import ArbiterEscalated
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.responder import ResponseEmitted
from schemas.vocabulary.router import Mode, ModeSelected, RouterConfigured


class Streak(msgspec.Struct, frozen=True):
    """A topic and its latest confidences, oldest first, all low: one that is not low ends the streak."""

    topic: str
    confidences: tuple[float, ...]


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """What the router remembers of a session.

    ``exchanges`` counts its inputs, ``turns`` the answered ones that working memory holds; ``previous_mode`` is that of
    the last answer. ``act_unproductive`` says that the last answered exchange's ACT loop found nothing. ``streaks`` are
    the topics whose last decision had low confidence, the latest last. ``seen_ns`` is the time of the last event.
    """

    exchanges: int = 0
    turns: int = 0
    previous_mode: Mode | None = None
    act_unproductive: bool = False
    streaks: tuple[Streak, ...] = ()
    seen_ns: int = 0


class Topic(msgspec.Struct, frozen=True):
    """What a text is about, as it was appraised."""

    name: str = UNCLASSIFIED
    confidence: float = 0.0
    is_new: bool = False


class Pending(msgspec.Struct, frozen=True):
    """An exchange without a mode: its text, how many inputs its session had before it, and its topic once known."""

    text: str
    exchanges_before: int
    topic: Topic | None = None


class State(msgspec.Struct, frozen=True):
    """A router partition: settings, memories by session, texts by exchange, and the exchanges that ended lately."""

    settings: RouterSettings = RouterSettings()
    sessions: Generations[Memory] = Generations()
    pending: Map[str, Pending] = Map()
    ended: Generations[bool] = Generations()


def initial() -> State:
    """Return the state of a partition in which nothing has happened."""
    return State()


def decide(state: State, message: Message) -> tuple[Event, ...]:
    """Select a mode when the arbiter escalates an exchange whose text is pending; nothing else is decided."""
    if not isinstance(message.event, ArbiterEscalated):
        return ()
    pending = state.pending.get(message.exchange)
    if pending is None:
        return ()
    memory = recall(state, message)
    # Without an appraisal nothing is known but that a session's first input begins a topic.
    topic = pending.topic or Topic(is_new=pending.exchanges_before == 0)
    context = Context(
        turns=memory.turns,
        topic=topic.name,
        topic_confidence=topic.confidence,
        is_new_topic=topic.is_new,
        exchanges_before=pending.exchanges_before,
        previous_mode=memory.previous_mode,
        act_unproductive=memory.act_unproductive,
        recent_confidences=_streak(memory, topic.name),
    )
    return (select_mode(observe(pending.text, context, state.settings), context, state.settings),)


def evolve(state: State, message: Message) -> State:
    """Fold a message into the state; total."""
    match message.event:
        case InputReceived() if message.exchange in state.pending or state.ended.get(message.exchange):
            return state  # repeated; after its end none would come again to drop the text
        case InputReceived(text=text):
            memory = recall(state, message)
            pending = Pending(text, memory.exchanges)
            counted = msgspec.structs.replace(memory, exchanges=memory.exchanges + 1)
            return _remember(state, message, counted, state.pending.set(message.exchange, pending))
        case AppraisalCompleted() as appraisal:
            return _appraised(state, message.exchange, appraisal)
        case ModeSelected() as selected:
            memory = _with_confidence(recall(state, message), selected, state.settings)
            return _remember(state, message, memory, _without(state.pending, message.exchange))
        case ResponseEmitted() as response:
            memory = _with_answer(recall(state, message), response, state.settings)
            lifetime_ns = state.settings.ended_lifetime_ms * 1_000_000
            ended = state.ended.set(message.exchange, True, message.time_ns, lifetime_ns)
            remembered = _remember(state, message, memory, _without(state.pending, message.exchange))
            return msgspec.structs.replace(remembered, ended=ended)
        case RouterConfigured() as configured:
            return _configured(state, configured)
    return state


def recall(state: State, message: Message) -> Memory:
    """Return the memory of a message's session as of that message; a blank one after a lifetime without events."""
    memory = state.sessions.get(message.session_key)
    if memory is None or message.time_ns - memory.seen_ns > _lifetime_ns(state):
        return Memory()
    return memory


def _lifetime_ns(state: State) -> int:
    return state.settings.session_lifetime_ms * 1_000_000


def _remember(state: State, message: Message, memory: Memory, pending: Map[str, Pending]) -> State:
    seen = msgspec.structs.replace(memory, seen_ns=message.time_ns)
    sessions = state.sessions.set(message.session_key, seen, message.time_ns, _lifetime_ns(state))
    return msgspec.structs.replace(state, sessions=sessions, pending=pending)


def _appraised(state: State, exchange: str, appraisal: AppraisalCompleted) -> State:
    pending = state.pending.get(exchange)
    if pending is None or pending.topic is not None:
        return state
    topic = Topic(appraisal.conversation_topic, appraisal.topic_confidence, appraisal.is_new_topic)
    known = msgspec.structs.replace(pending, topic=topic)
    return msgspec.structs.replace(state, pending=state.pending.set(exchange, known))


def _without(pending: Map[str, Pending], exchange: str) -> Map[str, Pending]:
    return pending.delete(exchange) if exchange in pending else pending


def _streak(memory: Memory, topic: str) -> tuple[float, ...]:
    return next((streak.confidences for streak in memory.streaks if streak.topic == topic), ())


def _with_confidence(memory: Memory, selected: ModeSelected, settings: RouterSettings) -> Memory:
    if selected.selected_mode == "IGNORE":  # nothing was weighed, so nothing was uncertain
        return memory
    topic = selected.conversation_topic
    others = tuple(streak for streak in memory.streaks if streak.topic != topic)
    if selected.router_confidence >= settings.thresholds.low_confidence:
        return msgspec.structs.replace(memory, streaks=others)
    latest = (*_streak(memory, topic), selected.router_confidence)[-settings.thresholds.streak :]
    kept = (*others, Streak(topic, latest))[-settings.topics_remembered :]
    return msgspec.structs.replace(memory, streaks=kept)


def _with_answer(memory: Memory, response: ResponseEmitted, settings: RouterSettings) -> Memory:
    # Only what was answered in a mode is a turn of the talk: a blocked or failed input must not warm the context.
    if response.action != "EXECUTED" or response.mode is None:
        return memory
    turns = memory.turns if response.mode == "IGNORE" else min(memory.turns + 1, settings.saturation.turns)
    return msgspec.structs.replace(memory, turns=turns, previous_mode=response.mode, act_unproductive=False)


def _configured(state: State, configured: RouterConfigured) -> State:
    # Shells record only settings that convert. A log written by another release may hold some that do not; there the
    # last understood ones stay in force, since folding must never fail.
    try:
        settings = settings_of(configured, RouterSettings)
    except msgspec.ValidationError:
        return state
    return msgspec.structs.replace(state, settings=settings)
