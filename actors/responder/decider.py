"""The responder's state machine: ends each exchange once, or asks a model for its answer. Pure.

A partition's state is folded from inputs, verdicts, models' answers and ends; ``ending_events`` says what ends an
exchange. A stage is *silent* until it has given a verdict on the exchange. An end is *held* while an earlier stage is
silent, since that one may still ask for another end.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache

import msgspec

from actors.contract.text.shortening import shorten
from actors.responder.composing.prompting import request_again, request_for
from actors.responder.drafts import is_rerun_possible, with_best, with_failure, with_passed, with_reply
from actors.responder.ending_events import END_FUNCTIONS, PASSES, asks_model, must_wait, overrules
from actors.responder.forwarding import with_answer
from actors.responder.pending import ExchangeContext, Pending, Turn
from actors.responder.settings import ResponderSettings
from actors.responder.unserved_stages import MOST_ENDS, Stages, end_of_unserved, with_message
from schemas.actor import Emission, Message, session_key
from schemas.event import Event
from schemas.persistent import ByIdentity, ExpiringMap, Map
from schemas.vocabulary.act import ActFinished
from schemas.vocabulary.appraisal import AppraisalFailed
from schemas.vocabulary.arbiter import ArbiterEscalated
from schemas.vocabulary.breaker import BreakerCleared
from schemas.vocabulary.gateway import InputAnswered, InputReceived
from schemas.vocabulary.guardrails import GuardrailsRerunOrdered
from schemas.vocabulary.llm import LlmCompleted
from schemas.vocabulary.memory import MemoryRecalled, TurnsForgotten
from schemas.vocabulary.operator import ForgetOrdered
from schemas.vocabulary.reflex import ReflexAnswerPassed
from schemas.vocabulary.responder import ResponseEmitted, ResponseRequested
from schemas.vocabulary.router import ModeSelected
from schemas.vocabulary.swarm import StageLost

MEMORY_TURNS = 4
"""Most answered turns of a session that are remembered."""

_NS_PER_MS = 1_000_000


class ResponderState(msgspec.Struct, frozen=True):
    """Open exchanges, recently ended ones, the last answered turns of each session, and stages that nobody serves."""

    settings: ResponderSettings = ResponderSettings()
    pending: Map[str, Pending] = Map()
    ended: ExpiringMap[bool] = ExpiringMap()
    sessions: ExpiringMap[tuple[Turn, ...]] = ExpiringMap()
    lost: Stages = Stages()


def decide(state: ResponderState, message: Message) -> Iterable[Event | Emission]:
    """Return the end of the exchange that a message decides, or the request to a model for its answer.

    Nothing is returned for an exchange that is unknown or has ended.
    """
    if isinstance(message.event, StageLost):
        return tuple(_ends_of_unserved(state, message))
    pending = (
        _new_exchange(state, message) if isinstance(message.event, InputReceived) else _updated_exchange(state, message)
    )
    if pending is None:
        return ()
    if pending.held is not None and not must_wait(pending.held, pending.silent):
        return (_end(pending, pending.held, message),)
    context = _context(state, pending, message)
    request = _request(context, message.event) if pending.held is None else None
    if request is not None:
        return (request,)
    lost = with_message(state.lost, message) if state.lost else state.lost
    end = end_of_unserved(lost, context) if lost else None
    return () if end is None else (_end(pending, end, message),)


def _end(pending: Pending, end: ResponseEmitted, message: Message) -> Event | Emission:
    """Return the end of an exchange as it is emitted."""
    # An event of an actor whose scope is the agent has no session: the end is stored under the session of the input.
    return end if message.session else Emission(end, session=pending.session)


def _ends_of_unserved(state: ResponderState, message: Message) -> Iterator[Emission]:
    """Yield the ends of the exchanges that wait for a stage which is now known to be unserved."""
    lost, left = with_message(state.lost, message), MOST_ENDS
    for exchange in sorted(state.pending):
        pending = state.pending[exchange]
        end = end_of_unserved(lost, _context(state, pending, message, exchange))
        if end is not None and left:
            left -= 1
            yield Emission(end, agent=pending.agent, session=pending.session, exchange=exchange)


def _request(context: ExchangeContext, event: Event) -> ResponseRequested | None:
    """Return the request to a model: for an answer in the chosen mode, or for a better one."""
    if isinstance(event, ModeSelected) and event.terminal_mode is not None and not context.pending.asked:
        return request_for(context, event.terminal_mode) if asks_model(context, event.terminal_mode) else None
    if isinstance(event, GuardrailsRerunOrdered) and is_rerun_possible(context, event):
        return request_again(context, event)
    return None


def evolve(state: ResponderState, message: Message) -> ResponderState:
    """Fold a message: an input opens an exchange, the end closes it and is remembered, and old entries expire."""
    state = _without_expired(state, message.time_ns)
    event = message.event
    if state.lost or isinstance(event, StageLost):
        state = msgspec.structs.replace(state, lost=with_message(state.lost, message))
    if isinstance(event, InputReceived):
        pending = _new_exchange(state, message)
        if pending is None:
            return state
        return msgspec.structs.replace(state, pending=state.pending.set(message.exchange, pending))
    if isinstance(event, ResponseEmitted):
        return _close(state, message, event)
    if isinstance(event, ForgetOrdered):
        return _without_turns(state, (message.session_key,)) if event.what == "session" else state
    if isinstance(event, TurnsForgotten):
        return _without_turns(state, [session_key(message.agent, session) for session in event.sessions])
    pending = _updated_exchange(state, message)
    if pending is None:
        return state
    return msgspec.structs.replace(state, pending=state.pending.set(message.exchange, pending))


def _updated_exchange(state: ResponderState, message: Message) -> Pending | None:
    """Return an open exchange updated by a message; None if it is not open, or nothing changes."""
    pending = state.pending.get(message.exchange)
    if pending is None:
        return None
    event, kind = message.event, type(message.event)
    if kind in PASSES:
        pending = _after_pass(pending, message)
    if isinstance(event, MemoryRecalled):
        return msgspec.structs.replace(
            pending, recollections=event.recollections, recalled=True, told=event.told, retired=event.retired
        )
    if isinstance(event, ActFinished):
        return msgspec.structs.replace(pending, findings=event.findings, acted=True)
    if isinstance(event, ResponseRequested):
        return msgspec.structs.replace(
            pending,
            asked=message.id,
            loop_id=event.loop_id,
            entities=event.entities,
            cuts=event.call.cuts,
            awaits="model",
        )
    if kind not in END_FUNCTIONS:
        return pending if kind in PASSES else None
    return _with_end(pending, _turns(state, message.agent, pending), state.settings, message)


def _with_end(pending: Pending, turns: tuple[Turn, ...], settings: ResponderSettings, message: Message) -> Pending:
    """Return an open exchange after a message that may end it; computed once for deciding and folding.

    The inputs are immutable, so the result of the last call is recognised by their identity.
    """
    return _cached_with_end(ByIdentity(pending, turns, settings, message))


@lru_cache(maxsize=1)
def _cached_with_end(inputs: ByIdentity) -> Pending:
    pending, turns, settings, message = inputs.values
    event = message.event
    pending = _after_event(pending, event, message.id)
    context = ExchangeContext(pending, turns, settings, message.agent, message.time_ns, message.exchange)
    end = END_FUNCTIONS[type(event)](context, event)
    if end is None or (pending.held is not None and not overrules(end, pending.held)):
        return pending
    return msgspec.structs.replace(pending, held=end)


def _after_event(pending: Pending, event: Event, source: str) -> Pending:
    match event:
        case ModeSelected():
            return _after_mode(pending, event)
        case InputAnswered():
            return with_answer(pending, event)
        case LlmCompleted():
            return with_reply(pending, event, source)
        case ReflexAnswerPassed():
            return with_passed(pending, event)
        case GuardrailsRerunOrdered():
            return with_best(pending, event)
        case AppraisalFailed():
            return with_failure(pending, event)
    return pending


def _after_pass(pending: Pending, message: Message) -> Pending:
    event = message.event
    silent = tuple(stage for stage in pending.silent if stage != PASSES[type(event)])
    due_ns = pending.due_ns
    if isinstance(event, ArbiterEscalated):
        due_ns = min(due_ns, message.time_ns + event.deadline_after_ms * _NS_PER_MS)
    stance = event.standing.stance if isinstance(event, BreakerCleared) else pending.stance
    return msgspec.structs.replace(pending, silent=silent, due_ns=due_ns, stance=stance)


def _after_mode(pending: Pending, event: ModeSelected) -> Pending:
    first_mode = pending.first_mode or event.selected_mode
    selected = event if event.terminal_mode is not None and not pending.asked else pending.selected
    return msgspec.structs.replace(pending, first_mode=first_mode, selected=selected)


def _context(state: ResponderState, pending: Pending, message: Message, exchange: str = "") -> ExchangeContext:
    """Return the context of a message's exchange, or of another exchange of the partition that it concerns."""
    agent = pending.agent if exchange else message.agent
    turns = _turns(state, agent, pending)
    return ExchangeContext(pending, turns, state.settings, agent, message.time_ns, exchange or message.exchange)


def _turns(state: ResponderState, agent: str, pending: Pending) -> tuple[Turn, ...]:
    return state.sessions.get(session_key(agent, pending.session)) or ()


def _new_exchange(state: ResponderState, message: Message) -> Pending | None:
    """Return the exchange that an input opens; None if it opens none."""
    exchange, event = message.exchange, message.event
    # An empty exchange name could not identify a verdict, and a repeated input must not lead to a second end.
    if not isinstance(event, InputReceived) or not exchange:
        return None
    if exchange in state.pending or state.ended.get(exchange):
        return None
    is_answered_here = event.purpose == "answer"
    return Pending(
        text=event.text if is_answered_here else "",
        agent=message.agent,
        session=message.session,
        due_ns=message.time_ns + event.deadline_after_ms * _NS_PER_MS,
        purpose=event.purpose,
        reply_to=event.reply_to,
        stream=event.stream,
        layers=event.layers if is_answered_here and state.settings.backend != "composer" else (),
        remembered=is_answered_here,
    )


def _close(state: ResponderState, message: Message, event: ResponseEmitted) -> ResponderState:
    exchange, now_ns, settings = message.exchange, message.time_ns, state.settings
    ended = state.ended.set(exchange, True, now_ns, settings.ended_lifetime_ms * _NS_PER_MS)
    pending = state.pending.get(exchange)
    if pending is None:
        return msgspec.structs.replace(state, ended=ended)
    sessions = state.sessions
    turn = _turn(pending.text, event.response, settings.turn_limit)
    if event.action == "EXECUTED" and turn.said and pending.remembered:
        # Refused text is not kept: a later answer would quote it, or show it to a model.
        key = message.session_key
        turns = (*(sessions.get(key) or ()), turn)[-MEMORY_TURNS:]
        sessions = sessions.set(key, turns, now_ns, _session_lifetime_ns(settings))
    return ResponderState(settings, state.pending.delete(exchange), ended, sessions, state.lost)


def _turn(said: str, answered: str, limit: int) -> Turn:
    """Return a turn as it is remembered: both ends of a long text, since the question may be at either end."""
    shortened = [shorten(text.strip(), limit, len) for text in (said, answered)]
    characters, kept = sum(each.characters for each in shortened), sum(each.kept for each in shortened)
    return Turn(shortened[0].text, shortened[1].text, *((characters, kept) if kept < characters else (0, 0)))


def _without_turns(state: ResponderState, keys: Iterable[str]) -> ResponderState:
    """Drop the turns of sessions, given their keys; their open exchanges will not be remembered either."""
    sessions, pending, forgotten = state.sessions, state.pending, frozenset(keys)
    for key in forgotten:
        sessions = sessions.delete(key)
    for exchange, each in state.pending.items():
        if session_key(each.agent, each.session) in forgotten:
            pending = pending.set(exchange, msgspec.structs.replace(each, remembered=False))
    return msgspec.structs.replace(state, sessions=sessions, pending=pending)


def _without_expired(state: ResponderState, now_ns: int) -> ResponderState:
    ended = state.ended.aged(now_ns, state.settings.ended_lifetime_ms * _NS_PER_MS)
    sessions = state.sessions.aged(now_ns, _session_lifetime_ns(state.settings))
    if ended is state.ended and sessions is state.sessions:
        return state
    return ResponderState(state.settings, state.pending, ended, sessions, state.lost)


def _session_lifetime_ns(settings: ResponderSettings) -> int:
    # An expiring map keeps an entry for one to two lifetimes. So half of the setting keeps no text longer than it says.
    return settings.session_lifetime_ms * _NS_PER_MS // 2
