"""Reflection's state machine, by agent. With the backend ``off`` it keeps nothing and emits nothing.

It asks a model for second opinions on how an idle agent's inputs were routed. An *insight* is an opinion with the
answer whether it counts; a *stratum* is a group of decisions (of low or high confidence, or with two nearly equal
scores) that each review samples.

input.received          the exchange is open; the agent is not idle
router.mode_selected    the decision is kept with its exchange; if an ACT loop (looking things up) ran, the one after it
router.feedback_observed  if the person was satisfied, a disagreement with that decision does not count
response.emitted        -> reflection.scheduled, if the agent is idle now and has decisions to review
clock.fired             -> reflection.requested, if the agent has been idle long enough; if the last exchange ended too
                        recently, reflection.scheduled for the remaining time; else nothing. If no model has
                        answered in time -> reflection.concluded (unanswered)
llm.completed, .failed  -> reflection.concluded, for the request that was made
"""

import msgspec

from actors.reflection.opinion_call import opinion_call, opinions_of
from actors.reflection.opinion_counting import CountedInsight, conclude, counted_with, insight_of
from actors.reflection.sampling import Case, Shortfalls, case_of, draw_sample, shortfalls_after, stratum_of
from actors.reflection.settings import ReflectionSettings
from schemas.actor import Emission, Message
from schemas.event import Event, topic_of
from schemas.persistent import ExpiringMap, Map, with_entry
from schemas.vocabulary.clock import ClockFired
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.llm import ANSWER_INVALID, UNANSWERED, LlmCompleted, LlmFailed
from schemas.vocabulary.reflection import (
    Insight,
    ReflectionConcluded,
    ReflectionRequested,
    ReflectionScheduled,
    Sampled,
)
from schemas.vocabulary.responder import ResponseEmitted
from schemas.vocabulary.router import FeedbackObserved, ModeSelected

_NS_PER_MS = 1_000_000


class OpinionRequest(msgspec.Struct, frozen=True):
    """The request that a model has not answered yet."""

    request: str
    batch: tuple[Sampled, ...]


class AgentState(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept of an agent.

    Attributes:
        pending: Its open exchanges, each with its decision so far.
        queue: The decisions to review, oldest first.
        asked: The request to a model that is not answered yet, if any.
        counted: The insights of the window that count.
        owed: How many decisions too few each stratum has had in the batches so far.
        timer: Public subject of the event that set its pending timer; empty: none is pending.
        quiet_ns: When its last exchange ended: it has been idle since, if none is open.
        seen_ns: When its last message was stored.
    """

    pending: Map[str, Case | None] = Map()
    queue: tuple[Case, ...] = ()
    asked: OpinionRequest | None = None
    counted: tuple[CountedInsight, ...] = ()
    owed: Shortfalls = ()
    timer: str = ""
    quiet_ns: int = 0
    seen_ns: int = 0


class State(msgspec.Struct, frozen=True):
    """A partition: settings, what is kept of each agent (``minds``), and the exchanges that ended lately."""

    settings: ReflectionSettings = ReflectionSettings()
    minds: Map[str, AgentState] = Map()
    ended: ExpiringMap[bool] = ExpiringMap()


def decide(state: State, message: Message) -> tuple[Emission, ...]:
    """Return what a message leads to; see the module's docstring."""
    if state.settings.backend == "off":
        return ()
    agent, event = state.minds.get(message.agent, AgentState()), message.event
    match event:
        case ResponseEmitted() if message.exchange in agent.pending:
            after = _after_end(agent, message, event, state.settings)
            if after.timer or after.pending or after.asked is not None or not after.queue:
                return ()
            return _without_session(ReflectionScheduled(wake_after_ms=state.settings.idle_after_ms))
        case ClockFired() if _is_awaited_timer(agent, message, event):
            return _on_timer(agent, message, state.settings)
        case LlmCompleted() | LlmFailed() if agent.asked is not None and _is_answer(agent.asked, event):
            return _without_session(_conclusion(agent, agent.asked, event, message, state.settings))
    return ()


def evolve(state: State, message: Message) -> State:
    """Fold a message into the state; never raises."""
    event, settings = message.event, state.settings
    if settings.backend == "off":
        return state
    agent = state.minds.get(message.agent, AgentState())
    match event:
        case InputReceived(purpose="answer") if message.exchange not in agent.pending and not state.ended.get(
            message.exchange
        ):
            after = _with_exchange(agent, message.exchange, None)
        case ModeSelected(terminal_mode=str()) if message.exchange in agent.pending:
            after = _with_exchange(agent, message.exchange, case_of(message.exchange, event, message.time_ns))
        case FeedbackObserved() if event.feedback == "correct_route" or event.signal == "positive":
            if message.agent not in state.minds:
                return state
            after = _with_satisfied(agent, event.of_exchange)
        case ResponseEmitted():
            lifetime_ns = settings.ended_lifetime_ms * _NS_PER_MS
            ended = state.ended.set(message.exchange, True, message.time_ns, lifetime_ns)
            state = msgspec.structs.replace(state, ended=ended)
            if message.exchange not in agent.pending:
                return state
            after = _after_end(agent, message, event, settings)
        case ClockFired() if _is_awaited_timer(agent, message, event):
            after = msgspec.structs.replace(agent, timer="")
        case ReflectionScheduled():
            after = msgspec.structs.replace(agent, timer=_timer_of(event))
        case ReflectionRequested():
            asked = OpinionRequest(message.id, event.batch)
            shortfalls = shortfalls_after(dict(agent.owed), [sampled.stratum for sampled in event.batch], settings)
            after = msgspec.structs.replace(agent, asked=asked, owed=shortfalls, timer=_timer_of(event))
        case ReflectionConcluded():
            after = _after_conclusion(agent, message, event, settings)
        case _:
            return state
    return _with_agent(state, message, after)


def _with_agent(state: State, message: Message, agent: AgentState) -> State:
    seen = msgspec.structs.replace(agent, seen_ns=message.time_ns)
    minds = with_entry(state.minds, message.agent, seen, state.settings.agents, lambda each: each.seen_ns)
    return msgspec.structs.replace(state, minds=minds)


def _with_exchange(agent: AgentState, exchange: str, case: Case | None) -> AgentState:
    return msgspec.structs.replace(agent, pending=agent.pending.set(exchange, case))


def _without_session(event: Event) -> tuple[Emission, ...]:
    # The timer belongs to the agent, so the event has no session, whichever session's exchange ended last.
    return (Emission(event, session="", exchange=""),)


def _after_end(agent: AgentState, message: Message, end: ResponseEmitted, settings: ReflectionSettings) -> AgentState:
    case = agent.pending.get(message.exchange)
    queue = agent.queue
    if case is not None and end.action == "EXECUTED" and stratum_of(case.selected, settings) is not None:
        queue = (*queue, case)[-settings.queue :]
    pending = agent.pending.delete(message.exchange)
    return msgspec.structs.replace(agent, pending=pending, queue=queue, quiet_ns=message.time_ns)


def _timer_of(event: ReflectionScheduled | ReflectionRequested | ReflectionConcluded) -> str:
    return topic_of(event) if event.wake_after_ms else ""


def _is_awaited_timer(agent: AgentState, message: Message, fired: ClockFired) -> bool:
    # Compare the setter: a timer may fire while the event that replaces it is being stored.
    return bool(agent.timer) and fired.set_by == agent.timer and not message.exchange and not message.session


def _on_timer(agent: AgentState, message: Message, settings: ReflectionSettings) -> tuple[Emission, ...]:
    if agent.asked is not None:
        # No model answered. The review is not repeated before the next exchange has ended, since the request stays in
        # the log, and whoever calls models will still find it.
        counted = counted_with(agent.counted, (), message.time_ns, settings)
        return _without_session(conclude(counted, (), settings, wake_after_ms=0, reason=UNANSWERED))
    if agent.pending:
        return ()
    left_ms = settings.idle_after_ms - (message.time_ns - agent.quiet_ns) // _NS_PER_MS
    drawn = draw_sample(agent.queue, message.id, settings, dict(agent.owed))
    if not drawn:
        return ()
    if left_ms > 0:
        # Never longer than ``idle_after_ms``: a clock that was set back must not delay the review for ever.
        return _without_session(ReflectionScheduled(wake_after_ms=min(left_ms, settings.idle_after_ms)))
    return _without_session(opinion_call(drawn, settings))


def _is_answer(asked: OpinionRequest, event: LlmCompleted | LlmFailed) -> bool:
    if isinstance(event, LlmFailed) and not event.request:
        return event.failed_topic == topic_of(ReflectionRequested)
    return event.request == asked.request and event.purpose == "reflect"


def _conclusion(
    agent: AgentState,
    asked: OpinionRequest,
    event: LlmCompleted | LlmFailed,
    message: Message,
    settings: ReflectionSettings,
) -> ReflectionConcluded:
    opinions = opinions_of(event.text, len(asked.batch)) if isinstance(event, LlmCompleted) else None
    if opinions is None:
        reason = event.reason if isinstance(event, LlmFailed) else ANSWER_INVALID
        counted = counted_with(agent.counted, (), message.time_ns, settings)
        return conclude(counted, (), settings, wake_after_ms=settings.retry_after_ms, reason=reason)
    cases = {case.exchange: case for case in agent.queue}
    insights: tuple[Insight, ...] = tuple(
        insight_of(sampled.stratum, cases[sampled.exchange], opinions[number], settings)
        for number, sampled in enumerate(asked.batch, start=1)
        # The queue may have dropped a case meanwhile. An opinion on it cannot be checked any more.
        if number in opinions and sampled.exchange in cases
    )
    counted = counted_with(agent.counted, insights, message.time_ns, settings)
    reviewed = {sampled.exchange for sampled in asked.batch}
    more = any(exchange not in reviewed for exchange in cases)
    return conclude(counted, insights, settings, wake_after_ms=settings.idle_after_ms if more else 0)


def _after_conclusion(
    agent: AgentState, message: Message, event: ReflectionConcluded, settings: ReflectionSettings
) -> AgentState:
    # A batch without an answer is reviewed again. One with an unusable answer is not: it might never be usable.
    failed = event.reason not in ("", ANSWER_INVALID)
    reviewed = {sampled.exchange for sampled in agent.asked.batch} if agent.asked and not failed else set()
    queue = tuple(case for case in agent.queue if case.exchange not in reviewed)
    counted = counted_with(agent.counted, event.insights, message.time_ns, settings)
    return msgspec.structs.replace(agent, queue=queue, asked=None, counted=counted, timer=_timer_of(event))


def _with_satisfied(agent: AgentState, exchange: str) -> AgentState:
    queue = tuple(
        msgspec.structs.replace(case, satisfied=True) if case.exchange == exchange else case for case in agent.queue
    )
    counted = tuple(each for each in agent.counted if each.agrees or each.exchange != exchange)
    return msgspec.structs.replace(agent, queue=queue, counted=counted)


def reconfigured(state: State, settings: ReflectionSettings) -> State:
    """Return the state under other settings; switched off, all is dropped."""
    return State(settings=settings) if settings.backend == "off" else msgspec.structs.replace(state, settings=settings)
