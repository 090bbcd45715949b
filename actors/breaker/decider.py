"""Messages to the machine and its moves to events. Pure: the machines of a partition's sessions are folded from both.

appraisal.completed             the input is judged, once for its exchange
response.emitted                an end by an earlier guard counts as a refusal, which may terminate the session
clock.fired                     the breaker's own timer begins a recovery attempt
operator.breaker_reset_ordered  the session begins anew
operator.breaker_recovery_ordered  a recovery attempt begins, where the session is in VIOLATED
breaker.*                       the machine stands where the event says
"""

from collections.abc import Iterable
from typing import Literal

import msgspec

from actors.breaker import machine as moves
from actors.breaker.machine import Machine
from actors.breaker.recording import events_of, standing_of
from actors.breaker.settings import BreakerSettings
from schemas.actor import Message, readable_settings
from schemas.event import ROOT, Event
from schemas.persistent import Generations
from schemas.vocabulary.appraisal import AppraisalCompleted
from schemas.vocabulary.breaker import (
    BreakerAttemptFailed,
    BreakerCleared,
    BreakerConfigured,
    BreakerRecovered,
    BreakerRecoveryStarted,
    BreakerReset,
    BreakerTerminated,
    BreakerTripped,
    BreakerWithheld,
    Standing,
)
from schemas.vocabulary.clock import ClockFired
from schemas.vocabulary.precedents import BreakerRecoveryOrdered, BreakerResetOrdered
from schemas.vocabulary.responder import ResponseEmitted

Progress = Literal["judged", "refused", "both"]
"""What is known of an exchange: the breaker has judged it, an earlier guard has refused it."""

_OWN_SUBJECTS = f"{ROOT}.breaker."
_REFUSING_STAGES = frozenset({"REFLEX", "INTUITION", "COHERENCE"})
_REFUSALS = frozenset({"BLOCKED", "REJECTED"})
_NS_PER_MS = 1_000_000


class BreakerState(msgspec.Struct, frozen=True):
    """The machines of a partition's sessions, by session key, and how far its latest exchanges have got.

    ``marked`` holds the sessions that had a violation or were terminated, from then on: it forgets later.
    """

    settings: BreakerSettings = BreakerSettings()
    sessions: Generations[Machine] = Generations()
    marked: Generations[Machine] = Generations()
    exchanges: Generations[Progress] = Generations()


def decide(state: BreakerState, message: Message) -> Iterable[Event]:
    """Return the events that a message leads to; the table of the package says which, and in what order."""
    state = _forget(state, message.time_ns)
    settings = state.settings
    match message.event:
        case AppraisalCompleted(layers=layers) if _unjudged(state, message.exchange):
            reading = moves.read(layers, settings, _progress(state, message.exchange) == "refused")
            before = recall(state, message)
            if reading is None:
                # Nothing was appraised, so nothing vouches for the input; and nothing is known to count.
                return (BreakerWithheld(standing=standing_of(before, before, 0.0, settings)),)
            return events_of(before, moves.judge(before, reading, settings), reading, settings)
        case ResponseEmitted() as end if is_refusal(end) and _progress(state, message.exchange) == "judged":
            before = recall(state, message)
            return events_of(before, moves.refuse(before, settings), None, settings)
        case ClockFired(set_by=set_by) if set_by.startswith(_OWN_SUBJECTS):
            before = recall(state, message)
            return events_of(before, moves.start_recovery(before, "timer"), None, settings)
        case BreakerRecoveryOrdered():
            before = recall(state, message)
            return events_of(before, moves.start_recovery(before, "operator"), None, settings)
        case BreakerResetOrdered(by=by, why=why):
            standing = standing_of(recall(state, message), moves.new_machine(settings), 0.0, settings)
            return (BreakerReset(by=by, why=why, standing=standing),)
    return ()


def evolve(state: BreakerState, message: Message) -> BreakerState:
    """Fold a message: what was observed of a session, or where an own event says that it stands; time forgets."""
    state = _forget(state, message.time_ns)
    match message.event:
        case AppraisalCompleted() as appraisal:
            return _observe(state, message, appraisal)
        case ResponseEmitted() as end if is_refusal(end):
            return _refused(state, message)
        case BreakerReset(standing=standing):
            return _remember(state, message, _at(Machine(), standing))
        case BreakerTripped() | BreakerTerminated() as stopped:
            stands = _at(recall(state, message), stopped.standing)
            breakers = moves.with_violation(stands.breakers, stopped.violation)
            return _remember(state, message, msgspec.structs.replace(stands, breakers=breakers))
        case (
            BreakerCleared()
            | BreakerWithheld()
            | BreakerRecoveryStarted()
            | BreakerAttemptFailed()
            | BreakerRecovered() as moved
        ):
            return _remember(state, message, _at(recall(state, message), moved.standing))
        case BreakerConfigured() as configured:
            return _configure(state, configured)
    return state


def recall(state: BreakerState, message: Message) -> Machine:
    """Return the machine of a message's session; that of a new one where none is known."""
    key = message.session_key
    known = state.marked.get(key) or state.sessions.get(key)
    return known if known is not None else moves.new_machine(state.settings)


def is_refusal(end: ResponseEmitted) -> bool:
    """Whether an earlier guard refused the input; one that failed, or was silent until the deadline, did not."""
    return end.stage in _REFUSING_STAGES and end.action in _REFUSALS


def _at(machine: Machine, standing: Standing) -> Machine:
    return msgspec.structs.replace(
        machine,
        state=standing.state,
        trust=standing.trust,
        attempts=standing.attempts,
        attempt_turns=standing.attempt_turns,
    )


def _progress(state: BreakerState, exchange: str) -> Progress | None:
    return state.exchanges.get(exchange)


def _unjudged(state: BreakerState, exchange: str) -> bool:
    # A verdict on no exchange could answer nobody.
    return bool(exchange) and _progress(state, exchange) in (None, "refused")


def _observe(state: BreakerState, message: Message, appraisal: AppraisalCompleted) -> BreakerState:
    if not _unjudged(state, message.exchange):
        return state
    refused = _progress(state, message.exchange) == "refused"
    reading = moves.read(appraisal.layers, state.settings, refused)
    state = _note(state, message, "both" if refused else "judged")
    if reading is None:
        return state
    return _remember(state, message, moves.observe(recall(state, message), reading, state.settings))


def _refused(state: BreakerState, message: Message) -> BreakerState:
    """Count a refusal once its input was appraised, so that it can never be counted without the input."""
    match _progress(state, message.exchange):
        case "judged":
            state = _note(state, message, "both")
            return _remember(state, message, moves.count_refusal(recall(state, message)))
        case None if message.exchange:
            return _note(state, message, "refused")
    return state


def _note(state: BreakerState, message: Message, progress: Progress) -> BreakerState:
    lifetime_ns = state.settings.exchange_lifetime_ms * _NS_PER_MS
    exchanges = state.exchanges.set(message.exchange, progress, message.time_ns, lifetime_ns)
    return msgspec.structs.replace(state, exchanges=exchanges)


def _remember(state: BreakerState, message: Message, machine: Machine) -> BreakerState:
    key, now_ns, settings = message.session_key, message.time_ns, state.settings
    if machine.breakers.total or machine.state != "NORMAL" or state.marked.get(key) is not None:
        marked = state.marked.set(key, machine, now_ns, settings.marked_lifetime_ms * _NS_PER_MS)
        return msgspec.structs.replace(state, marked=marked)
    sessions = state.sessions.set(key, machine, now_ns, settings.session_lifetime_ms * _NS_PER_MS)
    return msgspec.structs.replace(state, sessions=sessions)


def _forget(state: BreakerState, now_ns: int) -> BreakerState:
    settings = state.settings
    sessions = state.sessions.aged(now_ns, settings.session_lifetime_ms * _NS_PER_MS)
    marked = state.marked.aged(now_ns, settings.marked_lifetime_ms * _NS_PER_MS)
    exchanges = state.exchanges.aged(now_ns, settings.exchange_lifetime_ms * _NS_PER_MS)
    if sessions is state.sessions and marked is state.marked and exchanges is state.exchanges:
        return state
    return BreakerState(settings, sessions, marked, exchanges)


def _configure(state: BreakerState, configured: BreakerConfigured) -> BreakerState:
    settings = readable_settings(configured, BreakerSettings)
    return state if settings is None else msgspec.structs.replace(state, settings=settings)
