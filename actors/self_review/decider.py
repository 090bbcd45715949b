"""Self-review's state machine: ticks, the numbers collected for them, and reviews. Pure.

input.received             the text is kept until memory has answered
appraisal.completed        the affect, novelty, uncertainty and danger of an open exchange
breaker.cleared            the session's stance
arbiter.passed             another model answers; from here on the exchange's end is a tick
memory.recalled            the recalled memories; from here on the exchange's end is a tick
act.finished               the memories that an ACT loop found
guardrails.*               fatigue and findings, for the agent's next tick
swarm.measured             the swarm's coherence index from here on
response.emitted           the exchange is over  } -> self_review.triggered, result and measured, and trace.seat_added;
tick.observed              an external tick      }    or self_review.disarmed and resolved; or nothing
operator.forget_ordered    open exchanges lose their text; a session's ticks are removed from the statistics
self_review.triggered      the gate is armed
self_review.disarmed       the gate is open
trace.seat_added           an entity's worth changes
self_review.configured     the settings from here on
"""

from functools import lru_cache
from operator import is_

import msgspec

from actors.self_review.agent_state import (
    AgentState,
    TickScores,
    mean_fatigue,
    score_tick,
    with_judgement,
    with_seat,
    with_tick,
    without_session,
    without_words,
)
from actors.self_review.exchange import Pending, pending_of, with_appraisal, with_recall, without_text
from actors.self_review.exchange import tick_of as tick_of_exchange
from actors.self_review.gate import events_of
from actors.self_review.settings import SelfReviewSettings
from actors.self_review.tick import Tick
from actors.self_review.tick import tick_of as tick_seen
from schemas.actor import Message
from schemas.event import Event
from schemas.persistent import ExpiringMap, Map, with_entry
from schemas.vocabulary.act import ActFinished
from schemas.vocabulary.appraisal import AppraisalCompleted
from schemas.vocabulary.arbiter import ArbiterPassed
from schemas.vocabulary.breaker import BreakerCleared
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.guardrails import GuardrailsFinalized, GuardrailsForceFinalized, GuardrailsRerunOrdered
from schemas.vocabulary.loops import TickObserved
from schemas.vocabulary.memory import MemoryRecalled
from schemas.vocabulary.operator import ForgetOrdered
from schemas.vocabulary.responder import ResponseEmitted
from schemas.vocabulary.self_review import SeatAdded, SelfReviewDisarmed, SelfReviewTriggered
from schemas.vocabulary.swarm import SwarmMeasured

_NS_PER_MS = 1_000_000


class State(msgspec.Struct, frozen=True):
    """A partition: its agents, open exchanges, those that ended lately, and the swarm's coherence index."""

    settings: SelfReviewSettings = SelfReviewSettings()
    sci: float = 1.0
    minds: Map[str, AgentState] = Map()
    pending: Map[str, Pending] = Map()
    ended: ExpiringMap[bool] = ExpiringMap()


def initial() -> State:
    """Return the state of a partition in which nothing has happened."""
    return State()


def decide(state: State, message: Message) -> tuple[Event, ...]:
    """Return the review or the resolution that a tick leads to."""
    found = _observed(_Moment(state, message))
    if found is None:
        return ()
    tick, seen = found
    return events_of(message.agent, message.time_ns, mind_of(state, message.agent), tick, seen, state.settings)


def evolve(state: State, message: Message) -> State:
    """Fold a message into the state; total."""
    state = _aged(state, message.time_ns)
    event = message.event
    mind = mind_of(state, message.agent)
    match event:
        case InputReceived():
            return _begin(state, message, event)
        case AppraisalCompleted() | BreakerCleared() | ArbiterPassed() | MemoryRecalled() | ActFinished():
            return _gather(state, message)
        case GuardrailsFinalized(trace=trace):
            return _with_mind(state, message, with_judgement(mind, trace.family, trace.reflection_fatigue, False))
        case GuardrailsForceFinalized(trace=trace) | GuardrailsRerunOrdered(trace=trace):
            return _with_mind(state, message, with_judgement(mind, trace.family, trace.reflection_fatigue, True))
        case SwarmMeasured(sci=sci):
            return msgspec.structs.replace(state, sci=sci)
        case ResponseEmitted() | TickObserved():
            return _end(_ticked(state, message), message)
        case ForgetOrdered():
            return _forget(state, message, event)
        case SelfReviewTriggered():
            return _with_mind(state, message, _gated(mind, armed=True))
        case SelfReviewDisarmed():
            return _with_mind(state, message, _gated(mind, armed=False))
        case SeatAdded():
            return _with_mind(state, message, with_seat(mind, event, message.session, state.settings))
    return state


def mind_of(state: State, agent: str) -> AgentState:
    """Return what is kept of an agent; an empty state for one without a tick."""
    return state.minds.get(agent) or AgentState()


class _Moment:
    """A state and a message: all that a tick depends on. It is the key of a cache.

    Both are immutable, so equality is by identity. Comparing their contents would cost more.
    """

    __slots__ = ("follows_from", "message", "state")

    def __init__(self, state: State, message: Message) -> None:
        self.state, self.message = state, message
        self.follows_from = (state.minds, state.pending, state.settings, state.sci, message)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Moment) and all(map(is_, self.follows_from, other.follows_from))

    def __hash__(self) -> int:
        return id(self.message)


@lru_cache(maxsize=1)
def _observed(moment: _Moment) -> tuple[Tick, TickScores] | None:
    """Return the tick of a message, if it is one, with its scores. It is computed once for deciding and folding."""
    state, message = moment.state, moment.message
    tick = _tick(state, message)
    return None if tick is None else (tick, score_tick(mind_of(state, message.agent), tick, state.sci, state.settings))


def _tick(state: State, message: Message) -> Tick | None:
    match message.event:
        case TickObserved() as seen:
            return tick_seen(seen, mean_fatigue(mind_of(state, message.agent)))
        case ResponseEmitted() as response:
            pending = state.pending.get(message.exchange)
            if pending is not None and pending.remembered is not None:
                mind = mind_of(state, message.agent)
                return tick_of_exchange(pending, response, mind.found, mean_fatigue(mind), state.settings)
    return None


def _ticked(state: State, message: Message) -> State:
    found = _observed(_Moment(state, message))
    if found is None:
        return state
    tick, seen = found
    return _with_mind(state, message, with_tick(mind_of(state, message.agent), tick, seen, state.settings))


def _gated(mind: AgentState, *, armed: bool) -> AgentState:
    return msgspec.structs.replace(mind, armed=armed, scores=(), unscored=0, waited=0)


def _begin(state: State, message: Message, received: InputReceived) -> State:
    exchange = message.exchange
    if not exchange or exchange in state.pending or state.ended.get(exchange):
        return state
    return _keep(state, exchange, pending_of(message.agent, message.session, received.text))


def _gather(state: State, message: Message) -> State:
    pending = state.pending.get(message.exchange)
    if pending is None:
        return state
    match message.event:
        case AppraisalCompleted() as event:
            pending = with_appraisal(pending, event)
        case BreakerCleared(standing=standing):
            pending = msgspec.structs.replace(pending, stance=standing.stance)
        case ArbiterPassed() if pending.remembered is None:
            pending = msgspec.structs.replace(with_recall(pending, (), state.settings), elsewhere=True)
        case MemoryRecalled(recollections=found) if pending.remembered is None:
            pending = with_recall(pending, found, state.settings)
        case ActFinished(findings=found) if pending.remembered is not None:
            pending = with_recall(pending, found, state.settings)
    return _keep(state, message.exchange, pending)


def _end(state: State, message: Message) -> State:
    if not isinstance(message.event, ResponseEmitted):
        return state
    exchange, lifetime_ns = message.exchange, state.settings.ended_lifetime_ms * _NS_PER_MS
    pending = state.pending.delete(exchange) if exchange in state.pending else state.pending
    ended = state.ended.set(exchange, True, message.time_ns, lifetime_ns)
    return msgspec.structs.replace(state, pending=pending, ended=ended)


def _forget(state: State, message: Message, ordered: ForgetOrdered) -> State:
    """Drop text: a session's text and ticks, or, for a single fact, the text of all open exchanges.

    Only memory knows the fact's value, so self-review cannot tell which of them hold it.
    """
    whole = ordered.what == "session"
    for exchange, pending in state.pending.items():
        if pending.agent == message.agent and (not whole or pending.session == message.session):
            state = _keep(state, exchange, without_text(pending))
    if message.agent not in state.minds:
        return state
    if not whole:
        return _with_mind(state, message, without_words(mind_of(state, message.agent)))
    mind = without_session(mind_of(state, message.agent), message.session, state.settings)
    return _with_mind(state, message, mind)


def _keep(state: State, exchange: str, pending: Pending) -> State:
    return msgspec.structs.replace(state, pending=state.pending.set(exchange, pending))


def _with_mind(state: State, message: Message, mind: AgentState) -> State:
    seen = msgspec.structs.replace(mind, seen_ns=message.time_ns)
    minds = with_entry(state.minds, message.agent, seen, state.settings.agents, lambda each: each.seen_ns)
    return msgspec.structs.replace(state, minds=minds)


def _aged(state: State, now_ns: int) -> State:
    ended = state.ended.aged(now_ns, state.settings.ended_lifetime_ms * _NS_PER_MS)
    return state if ended is state.ended else msgspec.structs.replace(state, ended=ended)
