"""Drift's state machine, by agent. Switched off, it keeps nothing and emits nothing.

A *drift* is an idle agent's attempt at a thought about what memory holds: concepts, which are terms that occurred in
episodes, the remembered exchanges. The composer puts it into fixed sentences, or a model is asked for its words.

input.received           the exchange is open; the agent is not idle
response.emitted         the exchange is over -> drift.scheduled, if no timer is pending, or one later than usual
clock.fired, own timer   an exchange is open -> drift.skipped (busy); its end schedules the next drift
                         memory has not answered -> drift.skipped (unanswered)
                         a model has not      -> drift.thought, the composer's
                         the agent is fatigued -> drift.skipped (fatigued)
                         else                 -> drift.started
memory.wandered          no concept, too weak, or an earlier thought -> drift.skipped, with a longer pause each time
                         else -> drift.thought and drift.scheduled, or drift.synthesis_requested of a model
llm.completed            kept until reflex has read it; an answer without a thought counts as llm.failed
reflex.answer_passed,    -> drift.thought (the composer's where the model gave none, or reflex withholds it), and
.answer_blocked,            drift.scheduled
llm.failed
operator.forget_ordered  a model is asked about forgotten text -> drift.skipped (forgotten); the text is dropped

Whether an exchange is open depends on the order of the log alone, not on how fast a worker is.
"""

import msgspec

from actors.drift.agent_state import (
    AgentState,
    Cycle,
    SynthesisRequest,
    Thought,
    fatigue,
    is_fatigued,
    reason_to_skip,
    resting_concepts,
    with_resting,
    with_skip,
    with_thought,
)
from actors.drift.draws import draw_drift, draw_pause
from actors.drift.outcomes import (
    events_of_timeout,
    events_of_verdict,
    events_of_wandering,
    events_without_answer,
    of_agent,
    schedule_next,
    skip_drift,
)
from actors.drift.settings import DriftSettings
from actors.drift.thought_texts import read_thought
from schemas.actor import Emission, Message
from schemas.event import topic_of
from schemas.persistent import ExpiringMap, Map, with_entry
from schemas.vocabulary.clock import ClockFired
from schemas.vocabulary.drift import (
    DriftScheduled,
    DriftSkipped,
    DriftStarted,
    DriftSynthesisRequested,
    DriftThought,
    Skip,
)
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.llm import ANSWER_INVALID, LlmCompleted, LlmFailed
from schemas.vocabulary.memory import MemoryWandered
from schemas.vocabulary.operator import ForgetOrdered
from schemas.vocabulary.reflex import ReflexAnswerBlocked, ReflexAnswerPassed
from schemas.vocabulary.responder import ResponseEmitted

_NS_PER_MS = 1_000_000
_FRUITLESS_SKIPS: frozenset[Skip] = frozenset(("no_seed", "weak", "repeated"))
"""Skips after which the next drift is later than usual, since one soon after would find the same."""


class State(msgspec.Struct, frozen=True):
    """A partition: settings, what is kept of each agent (``minds``), and the exchanges that ended lately."""

    settings: DriftSettings = DriftSettings()
    minds: Map[str, AgentState] = Map()
    ended: ExpiringMap[bool] = ExpiringMap()


def decide(state: State, message: Message) -> tuple[Emission, ...]:
    """Return what a message leads to; see the module's docstring."""
    agent, event, settings = state.minds.get(message.agent), message.event, state.settings
    if agent is None or not settings.enabled:
        return ()
    cycle = agent.cycle
    match event:
        # A timer that was delayed because there was nothing new is set again: the exchange has brought something new.
        case ResponseEmitted() if message.exchange in agent.pending and (agent.late or not agent.timer):
            return (schedule_next(message, settings),)
        case ClockFired() if _wakes(agent, message, event):
            return _events_of_timer(agent, message, settings)
        case MemoryWandered() if cycle is not None and _is_awaited(cycle, event):
            return events_of_wandering(agent, cycle, event, message, settings)
        case LlmCompleted() if cycle and cycle.asked and _answers(cycle.asked, event):
            if read_thought(event.text) is not None:
                return ()
            return events_without_answer(cycle, cycle.asked, ANSWER_INVALID, message, settings)
        case LlmFailed() if cycle and cycle.asked and _answers(cycle.asked, event):
            return events_without_answer(cycle, cycle.asked, event.reason, message, settings)
        case ReflexAnswerPassed(source=source) | ReflexAnswerBlocked(source=source) if (
            source and cycle and cycle.asked and cycle.asked.source == source
        ):
            return events_of_verdict(cycle, cycle.asked, event, message, settings)
        case ForgetOrdered() if cycle is not None and _is_about(event, message, cycle.asked):
            return (skip_drift("forgotten", message, draw_pause(message.id, settings)),)
    return ()


def evolve(state: State, message: Message) -> State:
    """Fold a message into the state; never raises."""
    event, settings = message.event, state.settings
    if not settings.enabled:
        return state
    before = state.minds.get(message.agent)
    agent = before if before is not None else AgentState()
    match event:
        case InputReceived(purpose="answer") if message.exchange and not state.ended.get(message.exchange):
            after = msgspec.structs.replace(agent, pending=agent.pending.set(message.exchange, True))
        case ResponseEmitted():
            return _without_exchange(state, message, before)
        case ClockFired() if _wakes(agent, message, event):
            after = msgspec.structs.replace(agent, timer="", late=False)
        case DriftScheduled():
            after = msgspec.structs.replace(agent, timer=_timer(event), late=False)
        case DriftStarted():
            after = msgspec.structs.replace(agent, cycle=Cycle(message.id, event.kind), timer=_timer(event))
        case DriftSkipped():
            after = with_resting(agent, event.seed, message.time_ns, settings)
            after = with_skip(after, event.reason) if event.reason in _FRUITLESS_SKIPS else after
            after = msgspec.structs.replace(after, cycle=None, timer=_timer(event))
        case MemoryWandered() if _is_awaited(agent.cycle, event):
            after = _with_wandering(agent, message, event, settings)
        case LlmCompleted() if agent.cycle and agent.cycle.asked and _answers(agent.cycle.asked, event):
            after = _with_answer(agent, agent.cycle, agent.cycle.asked, event, message.id)
        case DriftSynthesisRequested():
            after = _with_request(agent, message)
        case DriftThought():
            thought = Thought(event.seed, event.episode)
            after = with_thought(agent, thought, event.activation, message.time_ns, settings)
            after = msgspec.structs.replace(with_resting(after, event.seed, message.time_ns, settings), cycle=None)
        case _:
            return state
    return _with_agent(state, message, after)


# --- decisions


def _events_of_timer(agent: AgentState, message: Message, settings: DriftSettings) -> tuple[Emission, ...]:
    pause = draw_pause(message.id, settings)
    if agent.pending:
        return (skip_drift("busy", message, pause),)
    if agent.cycle is not None:
        return events_of_timeout(agent.cycle, message, pause)
    if is_fatigued(agent, message.time_ns, settings):
        return (skip_drift("fatigued", message, pause),)
    drawn = draw_drift(message.id, settings)
    started = DriftStarted(
        strategies=drawn.strategies,
        pick=drawn.pick,
        kind=drawn.kind,
        resting=resting_concepts(agent, message.time_ns, settings),
        fatigue=fatigue(agent, message.time_ns, settings),
        draws=drawn.draws,
        wake_after_ms=settings.patience_ms,
    )
    return (of_agent(started),)


# --- which messages an agent waits for


def _wakes(agent: AgentState, message: Message, fired: ClockFired) -> bool:
    """Whether a timer that fired is the one that an agent waits for."""
    # Compare the setter: a timer may fire while the event that replaces it is being stored.
    return bool(agent.timer) and fired.set_by == agent.timer and not message.exchange and not message.session


def _is_awaited(cycle: Cycle | None, wandered: MemoryWandered) -> bool:
    return cycle is not None and cycle.asked is None and wandered.request == cycle.started


def _answers(request: SynthesisRequest, event: LlmCompleted | LlmFailed) -> bool:
    """Whether a model's event is the answer, or the failure, of a request that has none yet."""
    if request.source:
        return False
    if isinstance(event, LlmFailed) and not event.request:
        return event.failed_topic == topic_of(DriftSynthesisRequested)
    return event.request == request.request and event.purpose == "reflect"


def _is_about(order: ForgetOrdered, message: Message, request: SynthesisRequest | None) -> bool:
    """Whether an order to forget may concern the text that a model is asked about."""
    # Only memory could tell whether the fact is quoted here. Losing one thought is no harm.
    return request is not None and (order.what == "fact" or request.session == message.session)


# --- folding


def _without_exchange(state: State, message: Message, agent: AgentState | None) -> State:
    lifetime_ns = state.settings.ended_lifetime_ms * _NS_PER_MS
    ended = state.ended.set(message.exchange, True, message.time_ns, lifetime_ns)
    state = msgspec.structs.replace(state, ended=ended)
    if agent is None or message.exchange not in agent.pending:
        return state
    pending = agent.pending.delete(message.exchange)
    return _with_agent(state, message, msgspec.structs.replace(agent, pending=pending, fruitless=0))


def _with_wandering(
    agent: AgentState, message: Message, wandered: MemoryWandered, settings: DriftSettings
) -> AgentState:
    """Return the agent's state after memory's answer, which is kept if a model is asked for a thought about it."""
    if agent.cycle is None or settings.synthesis != "llm" or reason_to_skip(agent, wandered, settings) is not None:
        return agent
    cycle = msgspec.structs.replace(agent.cycle, asked=SynthesisRequest("", message.session, wandered))
    return msgspec.structs.replace(agent, cycle=cycle)


def _with_request(agent: AgentState, message: Message) -> AgentState:
    if agent.cycle is None or agent.cycle.asked is None:
        return agent
    request = msgspec.structs.replace(agent.cycle.asked, request=message.id)
    return msgspec.structs.replace(agent, cycle=msgspec.structs.replace(agent.cycle, asked=request))


def _with_answer(
    agent: AgentState, cycle: Cycle, request: SynthesisRequest, event: LlmCompleted, source: str
) -> AgentState:
    if read_thought(event.text) is None:
        return agent
    asked = msgspec.structs.replace(request, answer=event.text, source=source)
    return msgspec.structs.replace(agent, cycle=msgspec.structs.replace(cycle, asked=asked))


def _timer(event: DriftScheduled | DriftStarted | DriftSkipped) -> str:
    return topic_of(event) if event.wake_after_ms else ""


def _with_agent(state: State, message: Message, agent: AgentState) -> State:
    minds = state.minds
    if msgspec.structs.replace(agent, seen_ns=0) == AgentState():
        return msgspec.structs.replace(state, minds=minds.delete(message.agent)) if message.agent in minds else state
    seen = msgspec.structs.replace(agent, seen_ns=message.time_ns)
    minds = with_entry(minds, message.agent, seen, state.settings.agents, lambda each: each.seen_ns)
    return msgspec.structs.replace(state, minds=minds)


def reconfigured(state: State, settings: DriftSettings) -> State:
    """Return the state under other settings; switched off, all is dropped."""
    return msgspec.structs.replace(state, settings=settings) if settings.enabled else State(settings=settings)
