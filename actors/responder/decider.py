"""How exchanges end. Pure: the state of a partition, and one verdict function for each event that can end one."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import msgspec

from actors.responder.composer import MEMORY_TURNS, compose, quote, text_of
from actors.responder.settings import ResponderSettings
from schemas.actor import Message, settings_of
from schemas.event import Event
from schemas.persistent import Generations, Map
from schemas.vocabulary.clock import ClockFired
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.reflex import ReflexBlocked, ReflexFailed, ReflexPassed
from schemas.vocabulary.responder import Action, ResponderConfigured, ResponseEmitted, Stage
from schemas.vocabulary.router import Mode, ModeSelected, RouterFailed

BACKEND = "composer"
_NS_PER_MS = 1_000_000


class Pending(msgspec.Struct, frozen=True):
    """An open exchange: what it asked, where a copy of the answer goes, and the stage that has to speak next."""

    text: str
    reply_to: str
    stage: Stage = "REFLEX"
    first_mode: Mode | None = None


class ResponderState(msgspec.Struct, frozen=True):
    """Exchanges that are open and that ended lately, and quotes of the last answered turns of each session."""

    settings: ResponderSettings = ResponderSettings()
    pending: Map[str, Pending] = Map()
    ended: Generations[bool] = Generations()
    sessions: Generations[tuple[str, ...]] = Generations()


class Case(msgspec.Struct, frozen=True):
    """What a verdict rests on besides its event: the exchange, its session's memory and the settings."""

    pending: Pending
    earlier: tuple[str, ...]
    settings: ResponderSettings


Verdict = Callable[[Case, Any], ResponseEmitted | None]
"""(case, event) -> the end of the exchange, or None to wait. ``VERDICTS`` pairs each with its event's type."""


def blocked(case: Case, event: ReflexBlocked) -> ResponseEmitted:
    """A known threat is refused."""
    return _end(case.pending, "REFLEX", "BLOCKED", event.pattern, text_of("refused"))


def failed(case: Case, event: Event, *, stage: Stage, actor: str) -> ResponseEmitted:
    """A stage that could not decide ends the exchange: what is not cleared is not answered."""
    return _end(case.pending, stage, "FAILED", f"{actor}_failed", text_of("unfinished"))


def overdue(case: Case, event: ClockFired) -> ResponseEmitted:
    """Nothing ended the exchange in time; the stage that kept silent is named."""
    return _end(case.pending, case.pending.stage, "FAILED", "deadline", text_of("unfinished"))


def selected(case: Case, event: ModeSelected) -> ResponseEmitted | None:
    """A terminal mode is answered in; without one an ACT loop runs first, and its re-route is waited for."""
    mode = event.terminal_mode
    if mode is None:
        return None
    first_mode = case.pending.first_mode or event.selected_mode
    answer = compose(mode, case.pending.text, event, case.earlier, case.settings.quote_limit)
    if answer is None:
        unanswerable = _end(case.pending, "DELIBERATIVE", "FAILED", "mode_not_answerable", text_of("unfinished"))
        return msgspec.structs.replace(unanswerable, mode=mode, first_mode=first_mode)
    return ResponseEmitted(
        stage="DELIBERATIVE",
        action="EXECUTED",
        reason=mode,
        mode=mode,
        first_mode=first_mode,
        response=answer,
        backend=BACKEND,
        reply_to=case.pending.reply_to,
    )


VERDICTS: Mapping[type[Event], Verdict] = {
    ReflexBlocked: blocked,
    ReflexFailed: partial(failed, stage="REFLEX", actor="reflex"),
    ModeSelected: selected,
    RouterFailed: partial(failed, stage="DELIBERATIVE", actor="router"),
    ClockFired: overdue,
}
"""Every event that can end an exchange. A new stage adds its verdicts here."""

NEXT_STAGE: Mapping[type[Event], Stage] = {ReflexPassed: "DELIBERATIVE", ModeSelected: "DELIBERATIVE"}
"""The stage that has to speak after an event: what a deadline reports as the silent one."""


def decide(state: ResponderState, message: Message) -> Iterable[Event]:
    """End the exchange that a message brings a verdict on; nothing for one that is unknown or has ended."""
    verdict = VERDICTS.get(type(message.event))
    pending = state.pending.get(message.exchange)
    if verdict is None or pending is None:
        return ()
    earlier = state.sessions.get(message.session_key) or ()
    end = verdict(Case(pending, earlier, state.settings), message.event)
    return () if end is None else (end,)


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
    stage = NEXT_STAGE.get(type(event))
    pending = state.pending.get(message.exchange)
    if stage is None or pending is None:
        return state
    first_mode = pending.first_mode
    if isinstance(event, ModeSelected):
        first_mode = first_mode or event.selected_mode
    pending = msgspec.structs.replace(pending, stage=stage, first_mode=first_mode)
    return msgspec.structs.replace(state, pending=state.pending.set(message.exchange, pending))


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


def _end(pending: Pending, stage: Stage, action: Action, reason: str, response: str) -> ResponseEmitted:
    return ResponseEmitted(
        stage=stage,
        action=action,
        reason=reason,
        mode=None,
        first_mode=pending.first_mode,
        response=response,
        backend=BACKEND,
        reply_to=pending.reply_to,
    )
