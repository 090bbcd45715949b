"""How exchanges end. Pure: the state of a partition, folded from inputs, verdicts and ends."""

from collections.abc import Iterable

import msgspec

from actors.responder.composer import MEMORY_TURNS, quote
from actors.responder.settings import ResponderSettings
from actors.responder.verdicts import PASSES, VERDICTS, Case, Pending, must_wait, overrules
from schemas.actor import Message, settings_of
from schemas.event import Event
from schemas.persistent import Generations, Map
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.responder import ResponderConfigured, ResponseEmitted
from schemas.vocabulary.router import ModeSelected

_NS_PER_MS = 1_000_000


class ResponderState(msgspec.Struct, frozen=True):
    """Exchanges that are open and that ended lately, and quotes of the last answered turns of each session."""

    settings: ResponderSettings = ResponderSettings()
    pending: Map[str, Pending] = Map()
    ended: Generations[bool] = Generations()
    sessions: Generations[tuple[str, ...]] = Generations()


def decide(state: ResponderState, message: Message) -> Iterable[Event]:
    """End the exchange that a message brings the deciding word on; nothing for one that is unknown or has ended."""
    pending = _heard(state, message)
    if pending is None or pending.held is None or must_wait(pending.held, pending.silent):
        return ()
    return (pending.held,)


def evolve(state: ResponderState, message: Message) -> ResponderState:
    """Fold a message: an input opens an exchange, its own end closes it and is remembered, time forgets."""
    state = _forget(state, message.time_ns)
    event = message.event
    if isinstance(event, InputReceived):
        return _open(state, message.exchange, event)
    if isinstance(event, ResponseEmitted):
        return _close(state, message, event)
    if isinstance(event, ResponderConfigured):
        return _configure(state, event)
    pending = _heard(state, message)
    if pending is None:
        return state
    return msgspec.structs.replace(state, pending=state.pending.set(message.exchange, pending))


def _heard(state: ResponderState, message: Message) -> Pending | None:
    """Return an open exchange with what a stage says of it; None where there is none, or nothing to add."""
    event, kind = message.event, type(message.event)
    pending = state.pending.get(message.exchange)
    if pending is None:
        return None
    if kind in PASSES:
        silent = tuple(stage for stage in pending.silent if stage != PASSES[kind])
        return msgspec.structs.replace(pending, silent=silent)
    if kind not in VERDICTS:
        return None
    earlier = state.sessions.get(message.session_key) or ()
    end = VERDICTS[kind](Case(pending, earlier, state.settings), event)
    if isinstance(event, ModeSelected):
        pending = msgspec.structs.replace(pending, first_mode=pending.first_mode or event.selected_mode)
    if end is None or (pending.held is not None and not overrules(end, pending.held)):
        return pending
    return msgspec.structs.replace(pending, held=end)


def _open(state: ResponderState, exchange: str, event: InputReceived) -> ResponderState:
    # No verdict could be told apart by an empty exchange; a repeated input must not lead to a second end.
    if not exchange or exchange in state.pending or state.ended.get(exchange):
        return state
    pending = state.pending.set(exchange, Pending(event.text, event.reply_to))
    return msgspec.structs.replace(state, pending=pending)


def _close(state: ResponderState, message: Message, event: ResponseEmitted) -> ResponderState:
    exchange, now_ns, settings = message.exchange, message.time_ns, state.settings
    ended = state.ended.set(exchange, True, now_ns, settings.ended_lifetime_ms * _NS_PER_MS)
    pending = state.pending.get(exchange)
    if pending is None:
        return msgspec.structs.replace(state, ended=ended)
    sessions = state.sessions
    quoted = quote(pending.text, settings.quote_limit)
    if event.action == "EXECUTED" and quoted:
        # Refused words are not kept: they would be quoted back, or shown to a model, by a later answer.
        key = message.session_key
        turns = (*(sessions.get(key) or ()), quoted)[-MEMORY_TURNS:]
        sessions = sessions.set(key, turns, now_ns, _session_generation_ns(settings))
    return ResponderState(settings, state.pending.delete(exchange), ended, sessions)


def _forget(state: ResponderState, now_ns: int) -> ResponderState:
    ended = state.ended.aged(now_ns, state.settings.ended_lifetime_ms * _NS_PER_MS)
    sessions = state.sessions.aged(now_ns, _session_generation_ns(state.settings))
    if ended is state.ended and sessions is state.sessions:
        return state
    return ResponderState(state.settings, state.pending, ended, sessions)


def _configure(state: ResponderState, event: ResponderConfigured) -> ResponderState:
    try:
        settings = settings_of(event, ResponderSettings)
    except msgspec.ValidationError:
        # Recorded by a release with other settings; a fold may not fail, and the settings in force stand.
        return state
    return msgspec.structs.replace(state, settings=settings)


def _session_generation_ns(settings: ResponderSettings) -> int:
    # Entries live for one to two generations, and no person's words longer than the lifetime.
    return settings.session_lifetime_ms * _NS_PER_MS // 2
