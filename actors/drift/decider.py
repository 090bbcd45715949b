"""Drift's state machine, agent by agent; switched off, nothing is kept and nothing is said.

input.received           the exchange is open; the agent is not idle
response.emitted         it is not -> drift.scheduled, where no timer is pending
clock.fired, own timer   an exchange is open -> drift.skipped (busy), until that ends
                         a drift is under way -> drift.skipped (unanswered): it has taken too long
                         the budget is spent  -> drift.skipped (fatigued)
                         else                 -> drift.started
memory.wandered          nothing to begin with, or weak -> drift.skipped
                         else -> drift.thought and drift.scheduled, or drift.synthesis_requested of a model
llm.completed, .failed   -> drift.thought, the composer's where the model's is none, and drift.scheduled
operator.forget_ordered  what a model is at is concerned -> drift.skipped (forgotten), and its words are dropped

Everything is decided at the place of its message in the log: whether an exchange is open there is no matter of lag.
"""

from typing import Literal

import msgspec

from actors.drift.composing import Worded, ask, compose, worded
from actors.drift.draws import NO_PAUSE, course, next_pause
from actors.drift.mind import Asked, Cycle, Mind, fatigue, is_tired, laying_to_rest, resting, spending
from actors.drift.settings import DriftSettings
from schemas.actor import Emission, Message, readable_settings
from schemas.event import Event, topic_of
from schemas.persistent import Generations, Map
from schemas.vocabulary.clock import ClockFired
from schemas.vocabulary.drift import (
    DriftConfigured,
    DriftScheduled,
    DriftSkipped,
    DriftStarted,
    DriftSynthesisRequested,
    DriftThought,
    Skip,
)
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.llm import LlmCompleted, LlmFailed
from schemas.vocabulary.memory import MemoryWandered
from schemas.vocabulary.precedents import ForgetOrdered
from schemas.vocabulary.responder import ResponseEmitted

_NS_PER_MS = 1_000_000
_UNTIL_TALKED_TO: frozenset[Skip] = frozenset(("busy", "no_episode", "unanswered"))
"""Skips after which no time changes anything: the end of the next exchange does.

Who did not answer is not asked again and again: the question lies in the log until they are back.
"""

ANSWER_INVALID = "answer_invalid"


class State(msgspec.Struct, frozen=True):
    """A partition: settings, agents' minds, and the exchanges that ended lately."""

    settings: DriftSettings = DriftSettings()
    minds: Map[str, Mind] = Map()
    ended: Generations[bool] = Generations()


def decide(state: State, message: Message) -> tuple[Emission, ...]:
    """Return what a message leads to; see the module."""
    mind, event, settings = state.minds.get(message.agent), message.event, state.settings
    if mind is None or not settings.enabled:
        return ()
    cycle = mind.cycle
    match event:
        case ResponseEmitted() if message.exchange in mind.pending and not mind.timer:
            return (_scheduled(message, settings),)
        case ClockFired() if _wakes(mind, message, event):
            return (_woken(mind, message, settings),)
        case MemoryWandered() if cycle is not None and _is_next(cycle, event):
            return _come_upon(cycle, event, message, settings)
        case LlmCompleted() | LlmFailed() if cycle and cycle.asked and _answers(cycle.asked, event):
            return _answered(cycle, cycle.asked, event, message, settings)
        case ForgetOrdered() if cycle is not None and _concerns(event, message, cycle.asked):
            return (_skipped("forgotten", message, settings),)
    return ()


def evolve(state: State, message: Message) -> State:
    """Fold a message into the state; total."""
    event, settings = message.event, state.settings
    if isinstance(event, DriftConfigured):
        return _configured(state, event)
    if not settings.enabled:
        return state
    known = state.minds.get(message.agent)
    mind = known if known is not None else Mind()
    match event:
        case InputReceived() if message.exchange and not state.ended.get(message.exchange):
            return _with(
                state, message, msgspec.structs.replace(mind, pending=mind.pending.set(message.exchange, True))
            )
        case ResponseEmitted():
            return _end(state, message, known)
        case ClockFired() if _wakes(mind, message, event):
            return _with(state, message, msgspec.structs.replace(mind, timer=""))
        case DriftScheduled():
            return _with(state, message, msgspec.structs.replace(mind, timer=_timer(event)))
        case DriftStarted():
            cycle = Cycle(message.id, event.kind)
            return _with(state, message, msgspec.structs.replace(mind, cycle=cycle, timer=_timer(event)))
        case DriftSkipped():
            rested = laying_to_rest(mind, event.seed, message.time_ns, settings)
            return _with(state, message, msgspec.structs.replace(rested, cycle=None, timer=_timer(event)))
        case MemoryWandered() if _is_next(mind.cycle, event):
            return _with(state, message, _coming_upon(mind, message, event, settings))
        case DriftSynthesisRequested():
            return _with(state, message, _asking(mind, message))
        case DriftThought():
            spent = spending(mind, event.activation, message.time_ns, settings)
            after = laying_to_rest(spent, event.seed, message.time_ns, settings)
            return _with(state, message, msgspec.structs.replace(after, cycle=None))
    return state


# --- decisions


def _scheduled(message: Message, settings: DriftSettings) -> Emission:
    return _of_agent(DriftScheduled(**next_pause(message.id, settings)._asdict()))


def _skipped(
    reason: Skip, message: Message, settings: DriftSettings, *, seed: str = "", activation: float = 0.0
) -> Emission:
    pause = NO_PAUSE if reason in _UNTIL_TALKED_TO else next_pause(message.id, settings)
    return _of_agent(DriftSkipped(reason=reason, seed=seed, activation=activation, **pause._asdict()))


def _woken(mind: Mind, message: Message, settings: DriftSettings) -> Emission:
    if mind.pending:
        return _skipped("busy", message, settings)
    if mind.cycle is not None:
        return _skipped("unanswered", message, settings)
    if is_tired(mind, message.time_ns, settings):
        return _skipped("fatigued", message, settings)
    drawn = course(message.id, settings)
    started = DriftStarted(
        strategies=drawn.strategies,
        pick=drawn.pick,
        kind=drawn.kind,
        resting=resting(mind, message.time_ns, settings),
        fatigue=fatigue(mind, message.time_ns, settings),
        draws=drawn.draws,
        wake_after_ms=settings.patience_ms,
    )
    return _of_agent(started)


def _come_upon(cycle: Cycle, upon: MemoryWandered, message: Message, settings: DriftSettings) -> tuple[Emission, ...]:
    if upon.reason:
        return (_skipped(upon.reason, message, settings),)
    if not _is_strong(upon, settings):
        return (_skipped("weak", message, settings, seed=upon.seed, activation=upon.activation),)
    if settings.synthesis == "llm":
        return (_of_session(DriftSynthesisRequested(request=cycle.started, call=ask(upon, settings)), message.session),)
    return _thought(upon, compose(upon, cycle.kind), message.session, message, settings)


def _answered(
    cycle: Cycle, asked: Asked, event: LlmCompleted | LlmFailed, message: Message, settings: DriftSettings
) -> tuple[Emission, ...]:
    found = worded(event.text) if isinstance(event, LlmCompleted) else None
    if found is not None:
        return _thought(asked.upon, found, asked.session, message, settings, by="llm")
    reason = event.reason if isinstance(event, LlmFailed) else ANSWER_INVALID
    return _thought(asked.upon, compose(asked.upon, cycle.kind), asked.session, message, settings, reason=reason)


def _thought(
    upon: MemoryWandered,
    found: Worded,
    session: str,
    message: Message,
    settings: DriftSettings,
    *,
    by: Literal["composer", "llm"] = "composer",
    reason: str = "",
) -> tuple[Emission, ...]:
    assert upon.strategy is not None, "memory names the strategy of whatever it came upon"
    thought = DriftThought(
        kind=found.kind,
        text=found.text,
        concept=upon.concept,
        seed=upon.seed,
        strategy=upon.strategy,
        activation=upon.activation,
        episode=upon.episode,
        by=by,
        reason=reason,
    )
    # A timer is its agent's, a thought its session's: one event cannot set the one and be the other.
    return _of_session(thought, session), _scheduled(message, settings)


def _of_agent(event: Event) -> Emission:
    return Emission(event, session="", exchange="")


def _of_session(event: Event, session: str) -> Emission:
    return Emission(event, session=session, exchange="")


# --- what a message is to an agent


def _wakes(mind: Mind, message: Message, fired: ClockFired) -> bool:
    # By its setter: a timer may go off while the event that replaces it is on its way.
    return bool(mind.timer) and fired.set_by == mind.timer and not message.exchange and not message.session


def _is_next(cycle: Cycle | None, upon: MemoryWandered) -> bool:
    return cycle is not None and cycle.asked is None and upon.request == cycle.started


def _is_strong(upon: MemoryWandered, settings: DriftSettings) -> bool:
    return upon.strategy is not None and upon.activation >= settings.threshold


def _answers(asked: Asked, event: LlmCompleted | LlmFailed) -> bool:
    if isinstance(event, LlmFailed) and not event.request:
        return event.failed_topic == topic_of(DriftSynthesisRequested)
    return event.request == asked.request and event.purpose == "reflect"


def _concerns(order: ForgetOrdered, message: Message, asked: Asked | None) -> bool:
    # Whether a fact is quoted only memory could say; a thought less is no loss.
    return asked is not None and (order.what == "fact" or asked.session == message.session)


# --- folding


def _end(state: State, message: Message, mind: Mind | None) -> State:
    lifetime_ns = state.settings.ended_lifetime_ms * _NS_PER_MS
    ended = state.ended.set(message.exchange, True, message.time_ns, lifetime_ns)
    state = msgspec.structs.replace(state, ended=ended)
    if mind is None or message.exchange not in mind.pending:
        return state
    return _with(state, message, msgspec.structs.replace(mind, pending=mind.pending.delete(message.exchange)))


def _coming_upon(mind: Mind, message: Message, upon: MemoryWandered, settings: DriftSettings) -> Mind:
    """Return the mind after what memory came upon: it is kept where a model is asked about it, which comes next."""
    if mind.cycle is None or settings.synthesis != "llm" or upon.reason or not _is_strong(upon, settings):
        return mind
    cycle = msgspec.structs.replace(mind.cycle, asked=Asked("", message.session, upon))
    return msgspec.structs.replace(mind, cycle=cycle)


def _asking(mind: Mind, message: Message) -> Mind:
    if mind.cycle is None or mind.cycle.asked is None:
        return mind
    asked = msgspec.structs.replace(mind.cycle.asked, request=message.id)
    return msgspec.structs.replace(mind, cycle=msgspec.structs.replace(mind.cycle, asked=asked))


def _timer(event: DriftScheduled | DriftStarted | DriftSkipped) -> str:
    return topic_of(event) if event.wake_after_ms else ""


def _with(state: State, message: Message, mind: Mind) -> State:
    minds = state.minds
    if mind != Mind():
        return msgspec.structs.replace(state, minds=minds.set(message.agent, mind))
    return msgspec.structs.replace(state, minds=minds.delete(message.agent)) if message.agent in minds else state


def _configured(state: State, configured: DriftConfigured) -> State:
    settings = readable_settings(configured, DriftSettings)
    if settings is None:
        return state
    return msgspec.structs.replace(state, settings=settings) if settings.enabled else State(settings=settings)
