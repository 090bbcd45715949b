"""Reflection's state machine, by agent. With the backend ``off`` it keeps nothing and emits nothing.

input.received          the exchange is open; the agent is not idle
router.mode_selected    the decision is kept with its exchange; the last one if an ACT loop ran
router.feedback_observed  the person was satisfied: disagreement with that decision does not count any more
response.emitted        -> reflection.scheduled, if the agent is idle now and has decisions to review
clock.fired             -> reflection.requested, if the agent has been idle long enough; if the last exchange ended too
                        recently, reflection.scheduled for the remaining time; else nothing. If no model has
                        answered in time -> reflection.concluded (unanswered)
llm.completed, .failed  -> reflection.concluded, for the request that was made
"""

import msgspec

from actors.reflection.judging import CountedInsight, conclude, counted_with, insight_of
from actors.reflection.opinion_call import opinion_call, opinions_of
from actors.reflection.sampling import Case, Owed, case_of, draw_sample, owed_after, stratum_of
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
        owed: The places that each stratum has had too few of.
        timer: Subject of the event that set its pending timer; empty: none is pending.
        quiet_ns: When its last exchange ended.
        seen_ns: When its last message was stored.
    """

    pending: Map[str, Case | None] = Map()
    queue: tuple[Case, ...] = ()
    asked: OpinionRequest | None = None
    counted: tuple[CountedInsight, ...] = ()
    owed: Owed = ()
    timer: str = ""
    quiet_ns: int = 0
    seen_ns: int = 0


class State(msgspec.Struct, frozen=True):
    """A partition: settings, agents' minds, and the exchanges that ended lately."""

    settings: ReflectionSettings = ReflectionSettings()
    minds: Map[str, AgentState] = Map()
    ended: ExpiringMap[bool] = ExpiringMap()


def decide(state: State, message: Message) -> tuple[Emission, ...]:
    """Return what a message leads to; see the module."""
    if state.settings.backend == "off":
        return ()
    mind, event = state.minds.get(message.agent, AgentState()), message.event
    match event:
        case ResponseEmitted() if message.exchange in mind.pending:
            after = _ended(mind, message, event, state.settings)
            if after.timer or after.pending or after.asked is not None or not after.queue:
                return ()
            return _of_agent(ReflectionScheduled(wake_after_ms=state.settings.idle_after_ms))
        case ClockFired() if _wakes(mind, message, event):
            return _woken(mind, message, state.settings)
        case LlmCompleted() | LlmFailed() if mind.asked is not None and _answers(mind.asked, event):
            return _of_agent(_concluded(mind, mind.asked, event, message, state.settings))
    return ()


def evolve(state: State, message: Message) -> State:
    """Fold a message into the state; total."""
    event, settings = message.event, state.settings
    if settings.backend == "off":
        return state
    mind = state.minds.get(message.agent, AgentState())
    match event:
        case InputReceived(purpose="answer") if _opens(state, mind, message.exchange):
            return _with(state, message, _opened(mind, message.exchange, None))
        case ModeSelected(terminal_mode=str()) if message.exchange in mind.pending:
            case_ = case_of(message.exchange, event, message.time_ns)
            return _with(state, message, _opened(mind, message.exchange, case_))
        case FeedbackObserved() if event.feedback == "correct_route" or event.signal == "positive":
            return _with(state, message, _satisfied(mind, event.of_exchange)) if message.agent in state.minds else state
        case ResponseEmitted():
            lifetime_ns = settings.ended_lifetime_ms * _NS_PER_MS
            ended = state.ended.set(message.exchange, True, message.time_ns, lifetime_ns)
            state = msgspec.structs.replace(state, ended=ended)
            if message.exchange not in mind.pending:
                return state
            return _with(state, message, _ended(mind, message, event, settings))
        case ClockFired() if _wakes(mind, message, event):
            return _with(state, message, msgspec.structs.replace(mind, timer=""))
        case ReflectionScheduled():
            return _with(state, message, msgspec.structs.replace(mind, timer=_timer(event)))
        case ReflectionRequested():
            asked = OpinionRequest(message.id, event.batch)
            owed = owed_after(dict(mind.owed), [sampled.stratum for sampled in event.batch], settings)
            return _with(state, message, msgspec.structs.replace(mind, asked=asked, owed=owed, timer=_timer(event)))
        case ReflectionConcluded():
            return _with(state, message, _learned(mind, message, event, settings))
    return state


def _with(state: State, message: Message, mind: AgentState) -> State:
    seen = msgspec.structs.replace(mind, seen_ns=message.time_ns)
    minds = with_entry(state.minds, message.agent, seen, state.settings.agents, lambda each: each.seen_ns)
    return msgspec.structs.replace(state, minds=minds)


def _opens(state: State, mind: AgentState, exchange: str) -> bool:
    return exchange not in mind.pending and not state.ended.get(exchange)


def _opened(mind: AgentState, exchange: str, case: Case | None) -> AgentState:
    return msgspec.structs.replace(mind, pending=mind.pending.set(exchange, case))


def _of_agent(event: Event) -> tuple[Emission, ...]:
    # The timer belongs to the agent, so the event has no session, whichever session's exchange ended last.
    return (Emission(event, session="", exchange=""),)


def _ended(mind: AgentState, message: Message, end: ResponseEmitted, settings: ReflectionSettings) -> AgentState:
    case = mind.pending.get(message.exchange)
    queue = mind.queue
    if case is not None and end.action == "EXECUTED" and stratum_of(case.selected, settings) is not None:
        queue = (*queue, case)[-settings.queue :]
    pending = mind.pending.delete(message.exchange)
    return msgspec.structs.replace(mind, pending=pending, queue=queue, quiet_ns=message.time_ns)


def _timer(event: ReflectionScheduled | ReflectionRequested | ReflectionConcluded) -> str:
    return topic_of(event) if event.wake_after_ms else ""


def _wakes(mind: AgentState, message: Message, fired: ClockFired) -> bool:
    # Compare the setter: a timer may fire while the event that replaces it is being stored.
    return bool(mind.timer) and fired.set_by == mind.timer and not message.exchange and not message.session


def _woken(mind: AgentState, message: Message, settings: ReflectionSettings) -> tuple[Emission, ...]:
    if mind.asked is not None:
        # Not repeated before the next exchange has ended: the request stays in the log until its owner is back.
        counted = counted_with(mind.counted, (), message.time_ns, settings)
        return _of_agent(conclude(counted, (), settings, wake_after_ms=0, reason=UNANSWERED))
    if mind.pending:
        return ()
    left_ms = settings.idle_after_ms - (message.time_ns - mind.quiet_ns) // _NS_PER_MS
    drawn = draw_sample(mind.queue, message.id, settings, dict(mind.owed))
    if not drawn:
        return ()
    if left_ms > 0:
        # Never longer than the whole time: a clock that was set back must not delay the review for ever.
        return _of_agent(ReflectionScheduled(wake_after_ms=min(left_ms, settings.idle_after_ms)))
    return _of_agent(opinion_call(drawn, settings))


def _answers(asked: OpinionRequest, event: LlmCompleted | LlmFailed) -> bool:
    if isinstance(event, LlmFailed) and not event.request:
        return event.failed_topic == topic_of(ReflectionRequested)
    return event.request == asked.request and event.purpose == "reflect"


def _concluded(
    mind: AgentState,
    asked: OpinionRequest,
    event: LlmCompleted | LlmFailed,
    message: Message,
    settings: ReflectionSettings,
) -> ReflectionConcluded:
    opinions = opinions_of(event.text, len(asked.batch)) if isinstance(event, LlmCompleted) else None
    if opinions is None:
        reason = event.reason if isinstance(event, LlmFailed) else ANSWER_INVALID
        counted = counted_with(mind.counted, (), message.time_ns, settings)
        return conclude(counted, (), settings, wake_after_ms=settings.retry_after_ms, reason=reason)
    cases = {case.exchange: case for case in mind.queue}
    insights: tuple[Insight, ...] = tuple(
        insight_of(sampled.stratum, cases[sampled.exchange], opinions[number], settings)
        for number, sampled in enumerate(asked.batch, start=1)
        # The queue may have dropped a case meanwhile. An opinion on it cannot be checked any more.
        if number in opinions and sampled.exchange in cases
    )
    counted = counted_with(mind.counted, insights, message.time_ns, settings)
    looked_at = {sampled.exchange for sampled in asked.batch}
    more = any(exchange not in looked_at for exchange in cases)
    return conclude(counted, insights, settings, wake_after_ms=settings.idle_after_ms if more else 0)


def _learned(
    mind: AgentState, message: Message, event: ReflectionConcluded, settings: ReflectionSettings
) -> AgentState:
    # A batch without an answer is reviewed again. One with an unusable answer is not: it might never be usable.
    failed = event.reason not in ("", ANSWER_INVALID)
    looked_at = {sampled.exchange for sampled in mind.asked.batch} if mind.asked and not failed else set()
    queue = tuple(case for case in mind.queue if case.exchange not in looked_at)
    counted = counted_with(mind.counted, event.insights, message.time_ns, settings)
    return msgspec.structs.replace(mind, queue=queue, asked=None, counted=counted, timer=_timer(event))


def _satisfied(mind: AgentState, exchange: str) -> AgentState:
    queue = tuple(
        msgspec.structs.replace(case, satisfied=True) if case.exchange == exchange else case for case in mind.queue
    )
    counted = tuple(each for each in mind.counted if each.agrees or each.exchange != exchange)
    return msgspec.structs.replace(mind, queue=queue, counted=counted)


def reconfigured(state: State, settings: ReflectionSettings) -> State:
    """Return the state under other settings; switched off, all is dropped."""
    return State(settings=settings) if settings.backend == "off" else msgspec.structs.replace(state, settings=settings)
