"""The swarm's state machine: what each event adds to the window, and when the index has moved. Pure.

input.received               accepted: waits for its end, or for the grace period to pass
the stages' verdicts         a decision of that actor
the stages' failures         a decision of that actor that failed
intuition.passed, .rejected  the precedents that it lists, and the nearest one for the decision to come
response.emitted             delivered, or not; a decision on an input, filed under the precedent that it is most like
effect requests              what waits for a stage that not every input needs: a model, an ACT loop, a specialist
                             (``asked_stages``)
swarm.stage_lost, _found     the stages that nobody serves, measured by the shell (``availability_events``)
swarm.over_budget, within_   those that decide too slowly, also measured by the shell
swarm.measured               the index that was recorded last
any of them                  -> swarm.measured, where the index has moved, or other stages are lost
"""

from collections.abc import Iterator
from typing import TypeVar

import msgspec

from actors.swarm.asked_stages import REQUESTS_AND_ANSWERS, with_asked_stages
from actors.swarm.availability_events import LostStage, availability_events
from actors.swarm.coherence_index import (
    AGREEING,
    DECIDED,
    DELIVERED,
    FAILED,
    FAILURES,
    PRECEDENTS,
    UNDELIVERED,
    PrecedentDecision,
    agreement_of,
    consistency_of,
    has_moved,
    measure,
)
from actors.swarm.settings import SwarmSettings
from actors.swarm.sliding_window import Window
from schemas.actor import Emission, Message
from schemas.availability import Availability
from schemas.catalogue import entry_of, failure_of, owned_by
from schemas.event import Event, Failed
from schemas.input_path import PATH
from schemas.persistent import ExpiringMap, Map
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.intuition import IntuitionPassed, IntuitionRejected
from schemas.vocabulary.responder import ResponseEmitted
from schemas.vocabulary.swarm import OverBudget, StageFound, StageLost, SwarmMeasured, WithinBudget

VERDICTS: tuple[type[Event], ...] = tuple(
    entry.event for owner in PATH for entry in owned_by(owner) if entry.verdict is not None
)
"""The events by which an actor on an input's path shows that it decides."""

WATCHED: tuple[str, ...] = tuple(dict.fromkeys(entry_of(event).owner for event in VERDICTS))
"""The actors whose health counts."""

_FAILURE_EVENTS = tuple(failure_of(actor) for actor in WATCHED)

CONSUMED: tuple[type[Event], ...] = tuple(
    dict.fromkeys((InputReceived, *VERDICTS, *_FAILURE_EVENTS, *REQUESTS_AND_ANSWERS))
)
"""What the swarm is measured from."""

_COUNT_NAMES: dict[type[Event], str] = {
    **{event: DECIDED + entry_of(event).owner for event in VERDICTS},
    **{event: FAILED + entry_of(event).owner for event in _FAILURE_EVENTS},
}
_NS_PER_MS = 1_000_000
_ENDED_KEPT = 512
"""Ended exchanges kept in each of the two generations of ``ended``."""

_LET_PASS = frozenset({"EXECUTED", "PASSED"})
"""How exchanges end whose input was let through."""

_UPSTREAM = "upstream"
"""The ``backend`` of an answer by the sender's own model, to which the input was forwarded."""

_GLOBAL = ""
"""The agent, session and exchange of an event about all of them."""

T = TypeVar("T")


class OpenExchange(msgspec.Struct, frozen=True):
    """An open exchange: when its input was stored, and the precedent that it resembles most, if any."""

    accepted_ns: int
    precedent: str = ""


class SwarmState(msgspec.Struct, frozen=True):
    """The counts of the window, the open exchanges, and what was recorded last.

    ``sci`` is the swarm coherence index that was recorded last, ``consistency`` its term for consistent decisions.
    ``pending`` holds no exchange for longer than the grace period and one slice. ``ended`` holds at most the latest
    thousand, so that a repeated input is not counted again. ``rulings`` are the latest decisions on inputs like a known
    precedent. ``lost`` are the stages that nobody serves, ``measured_lost`` those that the last index included,
    ``over`` those over their latency budget. ``asked`` are the optional stages that something waits for, with the time
    of the request.
    """

    settings: SwarmSettings = SwarmSettings()
    sci: float = 1.0
    window: Window = Window()
    pending: Map[str, OpenExchange] = Map()
    ended: ExpiringMap[bool] = ExpiringMap()
    rulings: tuple[PrecedentDecision, ...] = ()
    consistency: float = 1.0
    lost: Map[str, LostStage] = Map()
    measured_lost: tuple[str, ...] = ()
    over: Map[str, bool] = Map()
    asked: Map[str, int] = Map()


def decide(state: SwarmState, message: Message) -> tuple[Emission, ...]:
    """Return the index after the message, if it has moved: an event that records it."""
    if not _can_move(state, message):
        return ()
    after = _with_event(state, message)
    measured = measure(after.window.count_of, WATCHED, after.consistency, after.settings, after.lost)
    if not has_moved(measured.sci, state.sci, state.settings) and measured.lost == state.measured_lost:
        return ()
    return (Emission(measured, agent=_GLOBAL, session=_GLOBAL, exchange=_GLOBAL),)


def on_availability(state: SwarmState, availability: Availability) -> Iterator[Event]:
    """Return the events to be recorded for a measurement of all stages."""
    return availability_events(state.lost, state.over, state.asked, availability, state.settings)


def evolve(state: SwarmState, message: Message) -> SwarmState:
    """Fold a message into the state; never raises."""
    match message.event:
        case SwarmMeasured(sci=sci, lost=lost):
            return msgspec.structs.replace(state, sci=sci, measured_lost=lost)
        case StageLost() as event:
            recorded = LostStage(event.partitions, event.of, event.reason, event.absent_ms)
            return msgspec.structs.replace(state, lost=state.lost.set(event.actor, recorded))
        case StageFound(actor=actor):
            return msgspec.structs.replace(state, lost=_without(state.lost, actor))
        case OverBudget(actor=actor):
            return msgspec.structs.replace(state, over=state.over.set(actor, True))
        case WithinBudget(actor=actor):
            return msgspec.structs.replace(state, over=_without(state.over, actor))
    return _with_event(state, message)


def _without(stages: Map[str, T], name: str) -> Map[str, T]:
    return stages.delete(name) if name in stages else stages


def _can_move(state: SwarmState, message: Message) -> bool:
    """Whether a message can change the index: most cannot, and then the index need not be computed."""
    match message.event:
        case ResponseEmitted() | Failed():
            return True
        case IntuitionPassed(precedents=precedents) | IntuitionRejected(precedents=precedents) if precedents:
            return True
    if state.lost or state.measured_lost:
        return True
    # Every decision changes the share of failed ones, and time alone moves events out of the window.
    return message.time_ns >= state.window.end_ns or state.window.count_of(FAILURES) > 0


def _with_event(state: SwarmState, message: Message) -> SwarmState:
    """Return the state after a consumed event, with the window first moved to the event's time."""
    if message.time_ns >= state.window.end_ns:
        state = _with_new_slice(state, message.time_ns)
    event = message.event
    count_name = _COUNT_NAMES.get(type(event))
    if count_name is not None:
        window = state.window.add(count_name)
        state = _with_window(state, window.add(FAILURES) if isinstance(event, Failed) else window)
    asked = with_asked_stages(state.asked, event, message.time_ns)
    if asked is not state.asked:
        state = msgspec.structs.replace(state, asked=asked)
    match event:
        case InputReceived():
            return _with_accepted(state, message)
        case IntuitionPassed() | IntuitionRejected():
            return _with_precedents(state, message, event)
        case ResponseEmitted():
            return _with_end(state, message, event)
    return state


def _with_window(state: SwarmState, window: Window) -> SwarmState:
    # Spelled out, since it runs for every event and takes a fourth of the time of a replacement by field names.
    return SwarmState(
        state.settings,
        state.sci,
        window,
        state.pending,
        state.ended,
        state.rulings,
        state.consistency,
        state.lost,
        state.measured_lost,
        state.over,
        state.asked,
    )


def _with_accepted(state: SwarmState, message: Message) -> SwarmState:
    exchange = message.exchange
    if not exchange or exchange in state.pending or state.ended.get(exchange):
        return state
    return msgspec.structs.replace(state, pending=state.pending.set(exchange, OpenExchange(message.time_ns)))


def _with_precedents(state: SwarmState, message: Message, event: IntuitionPassed | IntuitionRejected) -> SwarmState:
    if not event.precedents:
        return state
    agreeing, whole = agreement_of(event.precedents)
    state = _with_window(state, state.window.add(PRECEDENTS, whole).add(AGREEING, agreeing))
    open_exchange = state.pending.get(message.exchange)
    if open_exchange is None:
        return state
    nearest = min(event.precedents, key=lambda each: (-each.similarity, each.precedent))
    # Names of precedents are unique only within an agent.
    resembling = msgspec.structs.replace(open_exchange, precedent=f"{message.agent}\n{nearest.precedent}")
    return msgspec.structs.replace(state, pending=state.pending.set(message.exchange, resembling))


def _with_end(state: SwarmState, message: Message, event: ResponseEmitted) -> SwarmState:
    open_exchange = state.pending.get(message.exchange)
    if open_exchange is None:
        return state
    lifetime_ns = state.settings.grace_ms * _NS_PER_MS
    # A failure of the sender's own model says nothing about the swarm.
    delivered = event.action != "FAILED" or event.backend == _UPSTREAM
    state = msgspec.structs.replace(
        state,
        window=state.window.add(DELIVERED if delivered else UNDELIVERED),
        pending=state.pending.delete(message.exchange),
        ended=_with_room(state.ended).set(message.exchange, True, message.time_ns, lifetime_ns),
    )
    if not (delivered and open_exchange.precedent):
        return state
    decision = PrecedentDecision(open_exchange.precedent, event.action in _LET_PASS, state.window.start_ns)
    return _with_rulings(state, (*state.rulings, decision)[-state.settings.decisions_kept :])


def _with_room(ended: ExpiringMap[bool]) -> ExpiringMap[bool]:
    """Return the map with room for another entry at any rate of events; its expiry alone would not bound it."""
    if len(ended.young) < _ENDED_KEPT:
        return ended
    return ExpiringMap(Map(), ended.young, ended.since_ns)


def _with_rulings(state: SwarmState, rulings: tuple[PrecedentDecision, ...]) -> SwarmState:
    consistency = consistency_of(rulings, state.settings.decisions_needed)
    return msgspec.structs.replace(state, rulings=rulings, consistency=consistency)


def _with_new_slice(state: SwarmState, now_ns: int) -> SwarmState:
    """Start the slice of ``now_ns``: drop what has left the window, and count exchanges that never ended."""
    settings = state.settings
    width_ns = max(1, settings.window_ms * _NS_PER_MS // settings.slices)
    window = state.window.move_to(now_ns, width_ns, settings.slices)
    overdue_ns = window.start_ns - settings.grace_ms * _NS_PER_MS
    overdue = [exchange for exchange, each in state.pending.items() if each.accepted_ns < overdue_ns]
    pending = state.pending
    for exchange in overdue:
        pending = pending.delete(exchange)
    oldest_ns = window.end_ns - settings.slices * width_ns
    rulings = tuple(each for each in state.rulings if each.start_ns >= oldest_ns)
    asked = state.asked
    for stage in [stage for stage, asked_ns in asked.items() if asked_ns < overdue_ns]:
        asked = asked.delete(stage)
    state = msgspec.structs.replace(
        state,
        window=window.add(UNDELIVERED, len(overdue)),
        pending=pending,
        asked=asked,
        ended=state.ended.aged(now_ns, settings.grace_ms * _NS_PER_MS),
    )
    return _with_rulings(state, rulings) if len(rulings) != len(state.rulings) else state


def reconfigured(state: SwarmState, settings: SwarmSettings) -> SwarmState:
    """Return the state under other settings with empty counts: slices of another width do not match the old ones."""
    return SwarmState(
        settings, state.sci, lost=state.lost, measured_lost=state.measured_lost, over=state.over, asked=state.asked
    )
