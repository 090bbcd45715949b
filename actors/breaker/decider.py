"""Turns messages into moves of a session's state machine, and moves into events. Pure.

appraisal.completed             the input is judged, once in its exchange
appraisal.judged                a language model's late answer on it counts as a violation if it finds one
response.emitted                an end by an earlier guard counts as a refusal, which may terminate the session
clock.fired                     the breaker's own timers begin a recovery attempt, or end one that has long been calm
operator.breaker_reset_ordered  the session starts over
operator.breaker_recovery_ordered  a recovery attempt begins, if the session is in VIOLATED
breaker.*                       the machine takes the values that the event records

Each session has a machine of its own, folded from these messages. Its *standing* is what every event of the breaker
reports of it: state, trust and counts before and after the move.
"""

from collections.abc import Iterable
from typing import Literal

import msgspec

from actors.breaker import machine as moves
from actors.breaker.machine import Machine
from actors.breaker.move_events import events_of, standing_of
from actors.breaker.settings import BreakerSettings
from schemas.actor import Message
from schemas.event import Event, topic_of
from schemas.persistent import ExpiringMap, Map
from schemas.vocabulary.appraisal import AppraisalCompleted, AppraisalJudged, LayerTrust
from schemas.vocabulary.breaker import (
    BreakerAttemptFailed,
    BreakerCalmed,
    BreakerCleared,
    BreakerFilled,
    BreakerRecovered,
    BreakerRecoveryStarted,
    BreakerReset,
    BreakerTerminated,
    BreakerTripped,
    BreakerWarned,
    BreakerWithheld,
    Standing,
)
from schemas.vocabulary.clock import ClockFired
from schemas.vocabulary.operator import BreakerRecoveryOrdered, BreakerResetOrdered
from schemas.vocabulary.responder import ResponseEmitted

Progress = Literal["judged", "refused", "both"]
"""What is known of an exchange: the breaker has judged it, an earlier guard has refused it, or both."""

_TIMERS_THAT_START = frozenset({topic_of(BreakerTripped), topic_of(BreakerAttemptFailed)})
_TIMER_THAT_ENDS = topic_of(BreakerRecoveryStarted)
"""The events whose timer begins a recovery attempt, and the one whose timer ends an attempt."""

_REFUSING_STAGES = frozenset({"REFLEX", "INTUITION", "COHERENCE"})
_REFUSALS = frozenset({"BLOCKED", "REJECTED"})
_NS_PER_MS = 1_000_000


class ExchangeProgress(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """How far an exchange has got, and the sequence at which it was judged; 0 where it was not."""

    progress: Progress
    judged_seq: int = 0


class TerminatedSession(msgspec.Struct, frozen=True, gc=False):
    """All that is kept of a terminated session. It is small, since it is kept until an operator resets the session."""

    trust: float
    attempts: int
    role_confusion: int
    context_saturation: int
    state: Literal["TERMINATED"] = "TERMINATED"


class BreakerState(msgspec.Struct, frozen=True):
    """The machines of a partition's sessions, by session key, and how far its latest exchanges have got.

    ``marked`` holds the sessions that had a violation, for longer than ``sessions`` holds the others. ``terminated``
    forgets nothing. Once it is full, inputs of unknown sessions are withheld: if the oldest were dropped instead, a
    terminated session would be admitted again.
    """

    settings: BreakerSettings = BreakerSettings()
    sessions: ExpiringMap[Machine] = ExpiringMap()
    marked: ExpiringMap[Machine] = ExpiringMap()
    exchanges: ExpiringMap[ExchangeProgress] = ExpiringMap()
    terminated: Map[str, TerminatedSession] = Map()


def decide(state: BreakerState, message: Message) -> Iterable[Event]:
    """Return the events that a message leads to; the package's docstring says which, and in what order."""
    state = _without_expired(state, message.time_ns)
    settings = state.settings
    before = machine_of(state, message)
    match message.event:
        case AppraisalCompleted(layers=layers) if _unjudged(state, message.exchange):
            reading = moves.reading_of(layers, settings, _progress(state, message.exchange) == "refused")
            if reading is None:
                # Nothing was appraised: nothing shows that the input is harmless, and there is nothing to count.
                return (BreakerWithheld(standing=standing_of(before, before, 0.0, settings), because="unappraised"),)
            if not _has_room(state, message):  # the record of terminated sessions is full
                standing = standing_of(before, before, reading.falsehood, settings)
                filled = BreakerFilled(terminated=len(state.terminated))
                return (filled, BreakerWithheld(standing=standing, because="record_full"))
            return events_of(before, moves.judge(before, reading, settings), reading, settings)
        case AppraisalJudged(late=True) as judged if _is_counted(state, message):
            reading = moves.reading_of(judged.layers, settings)
            known = moves.reading_of(_layers_before(judged), settings)
            if reading is None or known is None or known.violation:
                return ()  # nothing was judged, or the input was a violation before, and was counted as one
            return events_of(before, moves.judge_again(before, reading, settings), reading, settings)
        case ResponseEmitted() as end if is_refusal(end) and _is_counted(state, message):
            return events_of(before, moves.refuse(before, settings), None, settings)
        case ClockFired(set_by=set_by) if set_by in _TIMERS_THAT_START:
            return events_of(before, moves.start_recovery(before, "timer"), None, settings)
        case ClockFired(set_by=set_by, due_ns=due_ns) if set_by == _TIMER_THAT_ENDS:
            return events_of(before, moves.end_by_calm(before, due_ns, settings), None, settings)
        case BreakerRecoveryOrdered():
            return events_of(before, moves.start_recovery(before, "operator"), None, settings)
        case BreakerResetOrdered(by=by, why=why):
            standing = standing_of(before, moves.new_machine(settings), 0.0, settings)
            return (BreakerReset(by=by, why=why, standing=standing),)
    return ()


def evolve(state: BreakerState, message: Message) -> BreakerState:
    """Fold a message: an observation of a session, or the values of an own event; drop what has outlived its time."""
    state = _without_expired(state, message.time_ns)
    before = machine_of(state, message)
    match message.event:
        case AppraisalCompleted() as appraisal:
            return _with_input(state, message, appraisal)
        case ResponseEmitted() as end:
            return _with_refusal(state, message) if is_refusal(end) else state
        case BreakerReset(standing=standing):
            after = _with_standing(Machine(reset_seq=message.seq), standing)
        case BreakerTerminated(violation=violation, standing=standing):
            breakers = moves.with_violation(before.breakers, violation)
            after = Machine("TERMINATED", standing.trust, standing.attempts, breakers=breakers)
        case BreakerTripped(violation=violation, standing=standing):
            breakers = moves.with_violation(before.breakers, violation)
            after = msgspec.structs.replace(_with_standing(before, standing), breakers=breakers, warned=False)
        case BreakerRecoveryStarted(standing=standing) as started:
            after = _started(_with_standing(before, standing), message, started)
        case BreakerRecovered(standing=standing):
            after = msgspec.structs.replace(_with_standing(before, standing), calm_ns=0)
        case BreakerWarned(standing=standing) | BreakerCalmed(standing=standing):
            warned = isinstance(message.event, BreakerWarned)
            after = msgspec.structs.replace(_with_standing(before, standing), warned=warned)
        case BreakerWithheld(because="record_full" | "unappraised"):
            return state
        case BreakerCleared() | BreakerWithheld() | BreakerAttemptFailed() as event:
            after = _with_standing(before, event.standing)
        case _:
            return state
    return _with_machine(state, message, after)


def machine_of(state: BreakerState, message: Message) -> Machine:
    """Return the machine of a message's session; a new session's machine if the session is not known."""
    return _known(state, message.session_key) or moves.new_machine(state.settings)


def is_refusal(end: ResponseEmitted) -> bool:
    """Whether an earlier guard refused the input. A guard that failed, or missed the deadline, has not refused it."""
    return end.stage in _REFUSING_STAGES and end.action in _REFUSALS


def _known(state: BreakerState, key: str) -> Machine | None:
    """Return the machine of a session by its key; None if the session is not known."""
    ended = state.terminated.get(key)
    if ended is None:
        return state.marked.get(key) or state.sessions.get(key)
    breakers = moves.ViolationCounts(ended.role_confusion, ended.context_saturation)
    return Machine("TERMINATED", ended.trust, ended.attempts, breakers=breakers)


def _has_room(state: BreakerState, message: Message) -> bool:
    """Whether a message's session is known, or there is room for one more."""
    if len(state.terminated) < state.settings.terminated_sessions:
        return True
    return _known(state, message.session_key) is not None


def _started(machine: Machine, message: Message, event: BreakerRecoveryStarted) -> Machine:
    """Return the machine whose attempt began; an input that begins one is the first of its window."""
    first = 1 if event.by == "input" else 0
    return msgspec.structs.replace(
        machine,
        falsehoods=machine.falsehoods[len(machine.falsehoods) - first :],
        balances=machine.balances[len(machine.balances) - first :],
        # This is the time of the cause. The clock counts from the time of the event itself, which is this one or later.
        calm_ns=message.time_ns + event.wake_after_ms * _NS_PER_MS,
    )


def _with_standing(machine: Machine, standing: Standing) -> Machine:
    """Return the machine with the values that an event of the breaker records."""
    return msgspec.structs.replace(
        machine,
        state=standing.state,
        trust=standing.trust,
        attempts=standing.attempts,
        attempt_turns=standing.attempt_turns,
    )


def _layers_before(judged: AppraisalJudged) -> list[LayerTrust]:
    """Return the judged layers with the falsehood that each had without the model's judgement."""
    local = {part.layer: part.local for part in judged.parts}
    return [msgspec.structs.replace(each, falsehood=local.get(each.layer, each.falsehood)) for each in judged.layers]


def _progress(state: BreakerState, exchange: str) -> Progress | None:
    kept = state.exchanges.get(exchange)
    return kept.progress if kept is not None else None


def _is_counted(state: BreakerState, message: Message) -> bool:
    """Whether an input was judged, no earlier guard has refused it, and no reset has cleared it since."""
    kept = state.exchanges.get(message.exchange)
    return kept is not None and kept.progress == "judged" and kept.judged_seq > machine_of(state, message).reset_seq


def _unjudged(state: BreakerState, exchange: str) -> bool:
    # Without an exchange there is no one to answer.
    return bool(exchange) and _progress(state, exchange) in (None, "refused")


def _with_input(state: BreakerState, message: Message, appraisal: AppraisalCompleted) -> BreakerState:
    if not _unjudged(state, message.exchange):
        return state
    refused = _progress(state, message.exchange) == "refused"
    reading = moves.reading_of(appraisal.layers, state.settings, refused)
    counts = reading is not None and _has_room(state, message)
    # If the input is not counted, a refusal of it that comes later must not be counted either: so it is ``both``.
    state = _with_progress(state, message, "judged" if counts and not refused else "both")
    if reading is None or not counts:
        return state
    return _with_machine(state, message, moves.observe(machine_of(state, message), reading, state.settings))


def _with_refusal(state: BreakerState, message: Message) -> BreakerState:
    """Count a refusal once its input was appraised, so that it can never be counted without the input."""
    match _progress(state, message.exchange):
        case "judged":
            counts = _is_counted(state, message)
            state = _with_progress(state, message, "both")
            return (
                state if not counts else _with_machine(state, message, moves.count_refusal(machine_of(state, message)))
            )
        case None if message.exchange:
            return _with_progress(state, message, "refused")
    return state


def _with_progress(state: BreakerState, message: Message, progress: Progress) -> BreakerState:
    lifetime_ns = state.settings.exchange_lifetime_ms * _NS_PER_MS
    kept = ExchangeProgress(progress, message.seq if progress == "judged" else 0)
    exchanges = state.exchanges.set(message.exchange, kept, message.time_ns, lifetime_ns)
    return msgspec.structs.replace(state, exchanges=exchanges)


def _with_machine(state: BreakerState, message: Message, machine: Machine) -> BreakerState:
    key, now_ns, settings = message.session_key, message.time_ns, state.settings
    if machine.state == "TERMINATED":
        breakers = machine.breakers
        ended = TerminatedSession(machine.trust, machine.attempts, breakers.role_confusion, breakers.context_saturation)
        terminated = state.terminated.set(key, ended)
        marked, sessions = state.marked.delete(key), state.sessions.delete(key)
        return msgspec.structs.replace(state, terminated=terminated, marked=marked, sessions=sessions)
    if key in state.terminated:
        marked = state.marked.set(key, machine, now_ns, settings.marked_lifetime_ms * _NS_PER_MS)
        return msgspec.structs.replace(state, terminated=state.terminated.delete(key), marked=marked)
    if machine.breakers.total or machine.state != "NORMAL" or state.marked.get(key) is not None:
        marked = state.marked.set(key, machine, now_ns, settings.marked_lifetime_ms * _NS_PER_MS)
        return msgspec.structs.replace(state, marked=marked)
    sessions = state.sessions.set(key, machine, now_ns, settings.session_lifetime_ms * _NS_PER_MS)
    return msgspec.structs.replace(state, sessions=sessions)


def _without_expired(state: BreakerState, now_ns: int) -> BreakerState:
    settings = state.settings
    sessions = state.sessions.aged(now_ns, settings.session_lifetime_ms * _NS_PER_MS)
    marked = state.marked.aged(now_ns, settings.marked_lifetime_ms * _NS_PER_MS)
    exchanges = state.exchanges.aged(now_ns, settings.exchange_lifetime_ms * _NS_PER_MS)
    if sessions is state.sessions and marked is state.marked and exchanges is state.exchanges:
        return state
    return BreakerState(settings, sessions, marked, exchanges, state.terminated)
