"""Memory's state machine: what an agent remembers, what is recalled, and what is forgotten.

Of an exchange it keeps a turn (both texts, for a while), a gist (a summary in one line), an episode (the gist, for
long) and concepts (terms that occurred in it).

input.received          the text is kept until the exchange ends; counted among its session's inputs
appraisal.completed     topic, salience (how exciting and new it is) and embedding are kept with it
arbiter.escalated       -> memory.recalled, once, for an exchange whose text is kept
act.actions_requested   -> memory.actions_answered, for such an exchange
response.emitted        the text is dropped; -> memory.remembered, if it is an answer (EXECUTED) to a text,
                        and memory.facts_retired, if it takes back or replaces facts
operator.forget_ordered -> memory.forgotten, and for a fact memory.turns_forgotten: the sessions that contained it
memory.recalled         the recall counts for the agent's failure rate
memory.actions_answered memorized facts become known; recalls and skills are counted
memory.remembered       the exchange's turn, gist, facts, episode and concepts are remembered
memory.facts_retired    the facts taken back are not known any more
drift.started           -> memory.wandered: for a thought of the idle agent, one concept leads by association to an
                        episode, in whose session this is recorded
drift.thought           kept as a gist of the agent, for as long as its episode
trace.seat_added        a review's assessment of a memory, which then ranks higher or lower
memory.forgotten        a session or a fact is dropped, from open exchanges too
memory.configured       the new settings apply
"""

import msgspec

from actors.contract.text.terms import terms_of
from actors.memory.agent_memory import (
    AgentMemory,
    with_exchange,
    with_facts,
    with_recalls,
    with_skills_used,
    with_thought,
)
from actors.memory.extraction.corrections import KnownValues
from actors.memory.extraction.fact_extraction import ExtractedFacts, extract_facts
from actors.memory.extraction.keys import key_of
from actors.memory.extraction.private_facts import keeps, without_private
from actors.memory.familiarity import familiarity_of
from actors.memory.forgetting import (
    Remaining,
    RemovedByFact,
    quote_matcher,
    removed_with,
    sessions_with,
    without_fact,
    without_session,
)
from actors.memory.layers.episodes import Episode
from actors.memory.layers.facts import Origin, asked_by, asks_for_all
from actors.memory.layers.gist import gist_of
from actors.memory.layers.session import Gist, Session, replaced, sessions_of, turn_of
from actors.memory.pending import Pending, pending_of, with_appraisal, with_notes, with_recall, without_words
from actors.memory.recall import Cue, recall
from actors.memory.retirement import known_of, retired_values, retirement_events, with_retired
from actors.memory.settings import MemorySettings
from actors.memory.skills import SkillContext, fact_to_memorize, perform
from actors.memory.terms import concepts_in
from actors.memory.wandering import WanderRequest, wander
from actors.memory.weights import with_weight, without_stale_weights
from schemas.actor import Emission, Message
from schemas.event import Event
from schemas.persistent import ExpiringMap, Map, with_entry
from schemas.vocabulary.act import ActActionsRequested
from schemas.vocabulary.appraisal import AppraisalCompleted
from schemas.vocabulary.arbiter import ArbiterEscalated
from schemas.vocabulary.drift import DriftStarted, DriftThought
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.memory import (
    SESSIONS_AT_ONCE,
    FactsRetired,
    MemoryActionsAnswered,
    MemoryForgotten,
    MemoryRecalled,
    MemoryRemembered,
    TurnsForgotten,
)
from schemas.vocabulary.operator import ForgetOrdered
from schemas.vocabulary.responder import ResponseEmitted
from schemas.vocabulary.self_review import SeatAdded

_NS_PER_MS = 1_000_000
_COMPOSER = "composer"
"""The backend of an answer that no model wrote, but that was put together of fixed sentences and memories."""

_ANY_EMBEDDING = b"\x01"
"""An embedding to search for when only the building of the index matters."""


class Ended(msgspec.Struct, frozen=True):
    """The exchange that ended with the last message, with its text (``words``); kept until memory's event about it."""

    exchange: str
    words: Pending
    answer: str


class State(msgspec.Struct, frozen=True):
    """A partition: the memories of its agents, their sessions, open exchanges, and recently ended exchanges."""

    settings: MemorySettings = MemorySettings()
    minds: Map[str, AgentMemory] = Map()
    sessions: ExpiringMap[Session] = ExpiringMap()
    pending: Map[str, Pending] = Map()
    ending: Ended | None = None
    ended: ExpiringMap[bool] = ExpiringMap()


def warm(state: State) -> None:
    """Build the indexes of all agents' episodes."""
    for memory in state.minds.values():
        memory.episodes.ranking("", _ANY_EMBEDDING)


def decide(state: State, message: Message) -> tuple[Event | Emission, ...]:
    """Return the events that a message leads to; see the module's docstring."""
    event = message.event
    if isinstance(event, ForgetOrdered):
        return _forget_events(state, message, event)
    if isinstance(event, DriftStarted):
        return (_wander_event(state, message, event),)
    pending = state.pending.get(message.exchange)
    if pending is None:
        return ()
    match event:
        case ArbiterEscalated() if not pending.recalled:
            return (_recall_event(state, message, pending),)
        case ActActionsRequested():
            return _answer_actions(state, message, pending, event)
        case ResponseEmitted() if _is_remembered(pending, event):
            return _remember_events(state, message, pending, event)
    return ()


def evolve(state: State, message: Message) -> State:
    """Fold a message into the state; never raises."""
    state = _without_expired(state, message.time_ns)
    event = message.event
    if isinstance(event, MemoryRemembered):
        return _after_remembering(state, message, event)
    if state.ending is not None:
        state = msgspec.structs.replace(state, ending=None)
    pending = state.pending.get(message.exchange)
    match event:
        case InputReceived(purpose="answer") if (
            message.exchange and pending is None and not state.ended.get(message.exchange)
        ):
            return _begin(state, message, event)
        case AppraisalCompleted() if pending is not None:
            return _with_pending(state, message.exchange, with_appraisal(pending, event))
        case MemoryRecalled():
            memory = with_recalls(memory_of(state, message.agent), [bool(event.recollections)], state.settings)
            state = _with_memory(state, message, memory)
            if pending is None:
                return state
            return _with_pending(state, message.exchange, with_recall(pending, event))
        case MemoryActionsAnswered():
            return _after_actions(state, message, pending, event)
        case FactsRetired() if message.agent in state.minds:
            memory = with_retired(memory_of(state, message.agent), event, message.session)
            return _with_memory(state, message, memory)
        case ResponseEmitted():
            return _after_end(state, message, pending, event)
        case DriftThought() if message.agent in state.minds:
            memory = with_thought(memory_of(state, message.agent), event, message.time_ns, state.settings)
            return _with_memory(state, message, memory)
        case SeatAdded(entity=entity, value=value):
            memory = with_weight(memory_of(state, message.agent), entity, value, state.settings)
            return _with_memory(state, message, memory) if message.agent in state.minds else state
        case MemoryForgotten():
            return _after_forgetting(state, message, event)
    return state


def memory_of(state: State, agent: str) -> AgentMemory:
    """Return what an agent remembers; an empty memory for an unknown agent."""
    return state.minds.get(agent) or AgentMemory()


def session_of(state: State, message: Message) -> Session:
    """Return the turns and gists of a message's session at that message; none after a lifetime without events."""
    session = state.sessions.get(message.session_key)
    lifetime_ns = state.settings.session_lifetime_ms * _NS_PER_MS
    return session if session is not None and message.time_ns - session.seen_ns <= lifetime_ns else Session()


# --- decisions


def _recall_event(state: State, message: Message, pending: Pending) -> MemoryRecalled:
    memory, session, settings = memory_of(state, message.agent), session_of(state, message), state.settings
    text = pending.text
    asks = asked_by(text)
    cue = Cue(terms_of(text), pending.model, pending.embedding, asks=asks, asks_for_all=asks_for_all(text))
    found = recall(memory, session, cue, message.time_ns, settings).recollections
    stated = _facts_to_keep(state, message.agent, text, known_of(memory, session))
    return MemoryRecalled(
        familiarity=familiarity_of(memory, session, pending, message.time_ns, settings, found),
        recollections=found,
        told=stated.facts,
        retired=retired_values(memory, stated.facts, stated.ended),
    )


def _facts_to_keep(state: State, agent: str, text: str, known: KnownValues) -> ExtractedFacts:
    stated = extract_facts(text, known)
    return stated if keeps(state.settings.private, agent) else stated._replace(facts=without_private(stated.facts))


def _wander_event(state: State, message: Message, started: DriftStarted) -> Emission:
    """Search memory by association, for a thought of the idle agent; see ``actors.memory.wandering``.

    The strategies are ways to choose the concept that it begins with, the pick is the random number that chooses among
    those that a strategy finds, and resting ones were thought of lately.
    """
    request = WanderRequest(started.strategies, started.pick, frozenset(started.resting))
    result = wander(memory_of(state, message.agent), message.id, request, message.time_ns, state.settings)
    # The event belongs to the session of its text. So it is encrypted with that session's key, and forgotten with it.
    return Emission(result.wandered, session=result.session, exchange="")


def _answer_actions(state: State, message: Message, pending: Pending, asked: ActActionsRequested) -> tuple[Event, ...]:
    context = SkillContext(
        memory_of(state, message.agent),
        session_of(state, message),
        pending,
        message.time_ns,
        state.settings,
        keeps(state.settings.private, message.agent),
    )
    stored = tuple(fact for action in asked.actions if (fact := fact_to_memorize(context, action)) is not None)
    answered = MemoryActionsAnswered(
        request=message.id,
        iteration=asked.iteration,
        results=tuple(perform(context, action) for action in asked.actions),
        stored=stored,
    )
    return (answered, *retirement_events(context.memory, stored))


def _is_remembered(pending: Pending, response: ResponseEmitted) -> bool:
    return response.action == "EXECUTED" and not pending.forgotten and bool(pending.text.strip())


def _remember_events(
    state: State, message: Message, pending: Pending, response: ResponseEmitted
) -> tuple[MemoryRemembered | FactsRetired, ...]:
    # An answer of the composer quotes memories: remembering it would create memories of memories, without end.
    answer = "" if response.backend == _COMPOSER else response.response
    memory = memory_of(state, message.agent)
    known = known_of(memory, session_of(state, message))
    stated = pending.told if pending.recalled else _facts_to_keep(state, message.agent, pending.text, known)
    remembered = MemoryRemembered(
        conversation_topic=pending.topic,
        gist=gist_of(pending.text, answer, pending.noted),
        facts=stated.facts,
        concepts=concepts_in(f"{pending.text}\n{answer}", state.settings.concepts_per_exchange),
        salience=pending.salience,
    )
    return (remembered, *retirement_events(memory, stated.facts, stated.ended))


def _forget_events(state: State, message: Message, ordered: ForgetOrdered) -> tuple[Event, ...]:
    removed, affected = RemovedByFact(frozenset(), frozenset()), []
    if ordered.what == "fact":
        memory, sessions = memory_of(state, message.agent), sessions_of(state.sessions, message.agent)
        removed = removed_with(memory, sessions, ordered.key)
        open_sessions = {pending.session for pending in _exchanges_quoting(state, message.agent, ordered.key).values()}
        affected = sorted(sessions_with(memory, sessions, removed.exchanges) | open_sessions)
    forgotten = MemoryForgotten(
        what=ordered.what,
        key=ordered.key,
        by=ordered.by,
        why=ordered.why,
        count=_remaining(state, message, ordered.what, removed).count,
        exchanges=tuple(sorted(removed.exchanges)),
        facts=tuple(sorted(removed.facts)),
    )
    pages = range(0, len(affected), SESSIONS_AT_ONCE)
    return (forgotten, *(TurnsForgotten(sessions=tuple(affected[at : at + SESSIONS_AT_ONCE])) for at in pages))


def _exchanges_quoting(state: State, agent: str, key: str) -> dict[str, Pending]:
    """Return an agent's open exchanges whose text contains a value of a fact."""
    quotes = quote_matcher(each.value for each in memory_of(state, agent).facts.get(key_of(key), ()))
    return {
        name: pending
        for name, pending in state.pending.items()
        if pending.agent == agent and quotes("\n".join((pending.text, *pending.noted)))
    }


def _remaining(state: State, message: Message, what: str, removed: RemovedByFact) -> Remaining:
    memory, settings = memory_of(state, message.agent), state.settings
    if what == "session":
        own = state.sessions.get(message.session_key) or Session()
        return without_session(memory, message.session, own, settings)
    return without_fact(memory, sessions_of(state.sessions, message.agent), removed, settings)


# --- folding


def _begin(state: State, message: Message, received: InputReceived) -> State:
    session = session_of(state, message)
    pending = pending_of(message, received, session.exchanges)
    counted = msgspec.structs.replace(session, exchanges=session.exchanges + 1)
    return _with_pending(_with_session(state, message, counted), message.exchange, pending)


def _after_actions(state: State, message: Message, pending: Pending | None, event: MemoryActionsAnswered) -> State:
    memory = with_skills_used(memory_of(state, message.agent), event.results)
    found = [bool(result.recollections) for result in event.results if result.ok and result.skill == "recall"]
    memory = with_recalls(memory, found, state.settings)
    if pending is not None and event.stored and not pending.forgotten:
        memory = with_facts(memory, event.stored, Origin(pending.session, pending.topic), state.settings)
        state = _with_pending(state, message.exchange, with_notes(pending, event.stored))
    return _with_memory(state, message, memory)


def _after_end(state: State, message: Message, pending: Pending | None, response: ResponseEmitted) -> State:
    lifetime_ns = state.settings.ended_lifetime_ms * _NS_PER_MS
    ended = state.ended.set(message.exchange, True, message.time_ns, lifetime_ns)
    if pending is None:
        return msgspec.structs.replace(state, ended=ended)
    ending = Ended(message.exchange, pending, response.response) if _is_remembered(pending, response) else None
    return msgspec.structs.replace(state, pending=state.pending.delete(message.exchange), ending=ending, ended=ended)


def _after_remembering(state: State, message: Message, event: MemoryRemembered) -> State:
    ending, settings = state.ending, state.settings
    if ending is None or ending.exchange != message.exchange:
        return state
    pending = ending.words
    episode = Episode(
        session=pending.session,
        topic=event.conversation_topic,
        text=event.gist,
        salience=event.salience,
        at_ns=message.time_ns,
        model=pending.model,
        embedding=pending.embedding,
        concepts=tuple(dict.fromkeys(event.concepts)),
    )
    memory = with_exchange(memory_of(state, message.agent), episode, event.facts, settings)
    number = memory.exchanges
    session = session_of(state, message).remembering(
        turn_of(number, pending.text, ending.answer),
        Gist(number, event.conversation_topic, event.gist, message.time_ns),
        settings,
    )
    state = msgspec.structs.replace(_with_memory(state, message, memory), ending=None)
    return _with_session(state, message, session)


def _after_forgetting(state: State, message: Message, event: MemoryForgotten) -> State:
    removed = RemovedByFact(frozenset(event.exchanges), frozenset(event.facts))
    remaining = _remaining(state, message, event.what, removed)
    open_exchanges, sessions = state.pending, state.sessions
    if event.what == "session":
        addressed = (message.agent, message.session)
        affected = {
            name: pending for name, pending in open_exchanges.items() if (pending.agent, pending.session) == addressed
        }
    else:
        affected = _exchanges_quoting(state, message.agent, event.key)
    for exchange, pending in affected.items():
        open_exchanges = open_exchanges.set(exchange, without_words(pending))
    for name, session in remaining.sessions.items():
        sessions = replaced(sessions, message.agent, name, session)
    state = msgspec.structs.replace(state, pending=open_exchanges, sessions=sessions)
    if message.agent not in state.minds:
        return state
    return _with_memory(state, message, without_stale_weights(remaining.memory))


def _with_pending(state: State, exchange: str, pending: Pending) -> State:
    return msgspec.structs.replace(state, pending=state.pending.set(exchange, pending))


def _with_memory(state: State, message: Message, memory: AgentMemory) -> State:
    seen = msgspec.structs.replace(memory, seen_ns=message.time_ns)
    minds = with_entry(state.minds, message.agent, seen, state.settings.agents, lambda each: each.seen_ns)
    return msgspec.structs.replace(state, minds=minds)


def _with_session(state: State, message: Message, session: Session) -> State:
    seen = msgspec.structs.replace(session, seen_ns=message.time_ns)
    lifetime_ns = state.settings.session_lifetime_ms * _NS_PER_MS
    sessions = state.sessions.set(message.session_key, seen, message.time_ns, lifetime_ns)
    return msgspec.structs.replace(state, sessions=sessions)


def _without_expired(state: State, now_ns: int) -> State:
    sessions = state.sessions.aged(now_ns, state.settings.session_lifetime_ms * _NS_PER_MS)
    ended = state.ended.aged(now_ns, state.settings.ended_lifetime_ms * _NS_PER_MS)
    if sessions is state.sessions and ended is state.ended:
        return state
    return msgspec.structs.replace(state, sessions=sessions, ended=ended)
