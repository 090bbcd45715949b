"""Self-review's state machine: ticks, the numbers collected for them, and reviews. Pure.

A *tick* is one finished exchange that the guards let pass, or one step of an external engine. A *seat* is a review's
verdict on an entity (a memory in a prompt). While the gate is *armed*, a review is open and no other can fire.

input.received             the text is kept until memory has answered
appraisal.completed        the affect (how exciting and unpleasant), novelty, uncertainty and danger of an open exchange
breaker.cleared            the session's stance (how careful answers to it have to be)
arbiter.passed             another model answers; the exchange's end will be a tick
memory.recalled            the recalled memories; the exchange's end will be a tick
act.finished               the memories that an ACT loop, which looks things up, found
guardrails.*               fatigue (it grows with reruns that improve nothing), and whether they rejected an answer, for
                           the agent's next tick
swarm.measured             the coherence index of the swarm (all actors and agents together) is updated
response.emitted,          an exchange ends, or an external engine reports a tick -> self_review.triggered, result and
tick.observed              measured, and trace.seat_added (a review); or self_review.disarmed and resolved (the end of
                           one); or nothing
operator.forget_ordered    open exchanges lose their text; a session's ticks are removed from the statistics
self_review.triggered      the gate is armed until this review is resolved
self_review.disarmed       reviews can fire again
trace.seat_added           an entity's worth changes
self_review.configured     the new settings apply
"""

from functools import lru_cache

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
from actors.self_review.exchange_as_tick import Pending, pending_of, with_appraisal, with_recall, without_text
from actors.self_review.exchange_as_tick import tick_of as tick_of_exchange
from actors.self_review.gate import events_of
from actors.self_review.settings import SelfReviewSettings
from actors.self_review.tick import Tick
from actors.self_review.tick import tick_of as tick_of_engine
from schemas.actor import Message
from schemas.event import Event
from schemas.persistent import ByIdentity, ExpiringMap, Map, with_entry
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
    """A partition: its agents (``minds``), open exchanges, those that ended lately, and the swarm's coherence index."""

    settings: SelfReviewSettings = SelfReviewSettings()
    sci: float = 1.0
    minds: Map[str, AgentState] = Map()
    pending: Map[str, Pending] = Map()
    ended: ExpiringMap[bool] = ExpiringMap()


def decide(state: State, message: Message) -> tuple[Event, ...]:
    """Return the review or the resolution that a tick leads to."""
    scored = _scored_tick(state, message)
    if scored is None:
        return ()
    tick, tick_scores = scored
    return events_of(
        message.agent, message.time_ns, agent_state_of(state, message.agent), tick, tick_scores, state.settings
    )


def evolve(state: State, message: Message) -> State:
    """Fold a message into the state; never raises."""
    state = _without_expired(state, message.time_ns)
    event = message.event
    agent_state = agent_state_of(state, message.agent)
    match event:
        case InputReceived():
            return _begin(state, message, event)
        case AppraisalCompleted() | BreakerCleared() | ArbiterPassed() | MemoryRecalled() | ActFinished():
            return _gather(state, message)
        case GuardrailsFinalized() | GuardrailsForceFinalized() | GuardrailsRerunOrdered():
            was_rejected = not isinstance(event, GuardrailsFinalized)
            judged = with_judgement(agent_state, event.trace.family, event.trace.reflection_fatigue, was_rejected)
            return _with_agent(state, message, judged)
        case SwarmMeasured(sci=sci):
            return msgspec.structs.replace(state, sci=sci)
        case ResponseEmitted() | TickObserved():
            return _end(_with_tick(state, message), message)
        case ForgetOrdered():
            return _forget(state, message, event)
        case SelfReviewTriggered():
            return _with_agent(state, message, _with_gate(agent_state, armed=True))
        case SelfReviewDisarmed():
            return _with_agent(state, message, _with_gate(agent_state, armed=False))
        case SeatAdded():
            return _with_agent(state, message, with_seat(agent_state, event, message.session, state.settings))
    return state


def agent_state_of(state: State, agent: str) -> AgentState:
    """Return what is kept of an agent; an empty state for one without a tick."""
    return state.minds.get(agent) or AgentState()


def _scored_tick(state: State, message: Message) -> tuple[Tick, TickScores] | None:
    """Return the tick of a message, if it is one, with its scores. It is computed once for deciding and folding.

    The inputs are immutable, so the result of the last call is recognised by their identity.
    """
    if not isinstance(message.event, ResponseEmitted | TickObserved):
        return None
    return _scored(ByIdentity(state.minds, state.pending, state.settings, state.sci, message))


@lru_cache(maxsize=1)
def _scored(inputs: ByIdentity) -> tuple[Tick, TickScores] | None:
    minds, pending, settings, sci, message = inputs.values
    state = State(settings, sci, minds, pending)
    tick = _tick(state, message)
    if tick is None:
        return None
    return tick, score_tick(agent_state_of(state, message.agent), tick, sci, settings)


def _tick(state: State, message: Message) -> Tick | None:
    match message.event:
        case TickObserved() as event:
            return tick_of_engine(event, mean_fatigue(agent_state_of(state, message.agent)))
        case ResponseEmitted() as response:
            pending = state.pending.get(message.exchange)
            if pending is not None and pending.remembered is not None:
                agent_state = agent_state_of(state, message.agent)
                # ``found``: guardrails have rejected an answer since the last tick.
                return tick_of_exchange(pending, response, agent_state.found, mean_fatigue(agent_state), state.settings)
    return None


def _with_tick(state: State, message: Message) -> State:
    scored = _scored_tick(state, message)
    if scored is None:
        return state
    tick, tick_scores = scored
    return _with_agent(
        state, message, with_tick(agent_state_of(state, message.agent), tick, tick_scores, state.settings)
    )


def _with_gate(agent_state: AgentState, *, armed: bool) -> AgentState:
    return msgspec.structs.replace(agent_state, armed=armed, scores=(), unscored=0, waited=0)


def _begin(state: State, message: Message, received: InputReceived) -> State:
    exchange = message.exchange
    if not exchange or exchange in state.pending or state.ended.get(exchange):
        return state
    return _with_pending(state, exchange, pending_of(message.agent, message.session, received.text))


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
    return _with_pending(state, message.exchange, pending)


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
    whole_session = ordered.what == "session"
    for exchange, pending in state.pending.items():
        if pending.agent == message.agent and (not whole_session or pending.session == message.session):
            state = _with_pending(state, exchange, without_text(pending))
    if message.agent not in state.minds:
        return state
    if not whole_session:
        return _with_agent(state, message, without_words(agent_state_of(state, message.agent)))
    agent_state = without_session(agent_state_of(state, message.agent), message.session, state.settings)
    return _with_agent(state, message, agent_state)


def _with_pending(state: State, exchange: str, pending: Pending) -> State:
    return msgspec.structs.replace(state, pending=state.pending.set(exchange, pending))


def _with_agent(state: State, message: Message, agent_state: AgentState) -> State:
    updated = msgspec.structs.replace(agent_state, seen_ns=message.time_ns)
    minds = with_entry(state.minds, message.agent, updated, state.settings.agents, lambda each: each.seen_ns)
    return msgspec.structs.replace(state, minds=minds)


def _without_expired(state: State, now_ns: int) -> State:
    ended = state.ended.aged(now_ns, state.settings.ended_lifetime_ms * _NS_PER_MS)
    return state if ended is state.ended else msgspec.structs.replace(state, ended=ended)
