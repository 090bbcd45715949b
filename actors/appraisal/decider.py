"""Appraisal's state machine: the numbers of each input, once, and what is kept of a session. Pure.

A model is asked in two cases: it judges whether parts of an input are an attack (a *judgement*), or it answers a
person.

input.received          -> appraisal.completed, unless the exchange was appraised or has ended; its text is kept. With
                        it, or instead of it (``trust_gate``), appraisal.judgement_requested where a model is to be
                        asked
appraisal.judgement_requested  the model's judgement is waited for, and counted against the session's calls
appraisal.completed     its embedding is kept with its session, and moves the centre of its topic of conversation
response.requested      a model is asked, and its answer waited for
llm.completed           that answer is kept until reflex has read it
reflex.answer_passed    -> appraisal.answer_appraised, where it is about that answer
llm.completed, .failed  -> appraisal.judged, where it judges an input; and appraisal.completed, if that waits
clock.fired             -> appraisal.judged without a judgement, where none has come in time; and appraisal.completed,
                        if that waits
guardrails.appraisal_requested -> appraisal.answer_appraised, for the answer of another engine's deliberation
response.emitted        the exchange has ended: its text is dropped, a repetition of its input is not appraised; what
                        still waits for a judgement -> appraisal.judged and appraisal.completed without it
operator.allowance_recorded, operator.allowance_withdrawn  allowed text is not judged from the next input on
operator.forget_ordered the session is dropped
appraisal.configured    the settings from here on
"""

import msgspec

from actors.appraisal.answer_scores import (
    PendingAnswer,
    appraise_answer,
    appraise_external_answer,
    new_pending,
    with_answer,
    with_request,
)
from actors.appraisal.appraising import appraise, embedder_in, warm_up
from actors.appraisal.measures.vectors import from_text
from actors.appraisal.session_memory import SessionMemory, with_input
from actors.appraisal.settings import AppraisalSettings
from actors.appraisal.trust_gate import (
    ENDED,
    HOUR_NS,
    CallBudget,
    Waiting,
    events_of_answer,
    events_of_input,
    events_without_answer,
    is_awaited,
    parts_of,
    spent_after,
    waiting_on,
)
from actors.contract.text.allowances import Allowances
from schemas.actor import Message
from schemas.event import Event, topic_of
from schemas.persistent import ExpiringMap, Map
from schemas.vocabulary.allowances import AllowanceRecorded, AllowanceWithdrawn
from schemas.vocabulary.appraisal import AnswerAppraised, AppraisalCompleted, AppraisalJudged, JudgementRequested
from schemas.vocabulary.clock import ClockFired
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.guardrails import AppraisalRequested
from schemas.vocabulary.llm import UNANSWERED, LlmCompleted, LlmFailed
from schemas.vocabulary.operator import ForgetOrdered
from schemas.vocabulary.reflex import ReflexAnswerPassed
from schemas.vocabulary.responder import ResponseEmitted, ResponseRequested

_NS_PER_MS = 1_000_000


class AppraisalState(msgspec.Struct, frozen=True):
    """A partition: settings, the memory of each session, the exchanges appraised or ended lately, and the open ones.

    ``settled`` holds those appraised or ended, ``pending`` the open ones. ``allowances`` are the texts that operators
    have ordered not to judge. ``waiting`` holds the exchanges for which a model was asked for a judgement, ``spent``
    each session's number of such calls.
    """

    settings: AppraisalSettings = AppraisalSettings()
    sessions: ExpiringMap[SessionMemory] = ExpiringMap()
    settled: ExpiringMap[bool] = ExpiringMap()
    pending: Map[str, PendingAnswer] = Map()
    allowances: Allowances = Allowances()
    waiting: ExpiringMap[Waiting] = ExpiringMap()
    spent: ExpiringMap[CallBudget] = ExpiringMap()


def warm(state: AppraisalState) -> None:
    """Load the models, so that no input waits for them."""
    warm_up(state.settings)


def decide(state: AppraisalState, message: Message) -> tuple[Event, ...]:
    """Return the events of a message: of a new input, a model's judgement of one, or a model's answer to one."""
    waiting = state.waiting.get(message.exchange)
    if waiting is not None and (events := _judgement_events(waiting, message.event)):
        return events
    if isinstance(message.event, ReflexAnswerPassed):
        return _answer_events(state, message, message.event)
    if isinstance(message.event, AppraisalRequested):
        return (appraise_external_answer(message.event, state.settings),)
    if not isinstance(message.event, InputReceived) or waiting is not None or state.settled.get(message.exchange):
        return ()
    # Expired entries are not used, even if no message has dropped them yet.
    state = _without_expired(state, message.time_ns)
    memory = state.sessions.get(message.session_key) or SessionMemory()
    judged, allowed = state.allowances.judged(message.agent, message.event)
    appraisal = appraise(memory, message.event, state.settings, message.models, judged)
    appraisal = msgspec.structs.replace(appraisal, allowed=allowed) if allowed else appraisal
    if not state.settings.trust.asks or not message.exchange:
        return (appraisal,)
    parts = parts_of(judged, appraisal.layers, state.settings.judged_layers)
    return events_of_input(
        appraisal, parts, state.settings.trust, state.spent.get(message.session_key), message.time_ns
    )


def evolve(state: AppraisalState, message: Message) -> AppraisalState:
    """Fold a message into the state; never raises. No model runs here: all that was inferred is in the event."""
    state = _without_expired(state, message.time_ns)
    match message.event:
        case AppraisalCompleted() as completed:
            return _settled(_with_input(state, message, completed), message)
        case InputReceived(text=text) if message.exchange and not state.settled.get(message.exchange):
            return _with_pending(state, message, new_pending(text))
        case ResponseRequested() as request if message.exchange in state.pending:
            return _with_pending(state, message, with_request(state.pending[message.exchange], message.id, request))
        case LlmCompleted() as completed if message.exchange in state.pending:
            return _with_pending(state, message, with_answer(state.pending[message.exchange], completed, message.id))
        case AnswerAppraised() if message.exchange in state.pending:
            pending = msgspec.structs.replace(state.pending[message.exchange], request="", answer=None, answered="")
            return _with_pending(state, message, pending)
        case JudgementRequested() as request:
            return _with_waiting(state, message, request)
        case AppraisalJudged():
            return msgspec.structs.replace(state, waiting=state.waiting.delete(message.exchange))
        case ResponseEmitted():
            return _settled(_without_pending(state, message), message)
        case ForgetOrdered(what="session"):
            return msgspec.structs.replace(state, sessions=state.sessions.delete(message.session_key))
        case AllowanceRecorded() | AllowanceWithdrawn() as allowance:
            return msgspec.structs.replace(state, allowances=state.allowances.after(message.agent, allowance))
    return state


def _answer_events(state: AppraisalState, message: Message, passed: ReflexAnswerPassed) -> tuple[Event, ...]:
    pending = state.pending.get(message.exchange)
    appraisal = None if pending is None else appraise_answer(pending, passed, state.settings)
    return () if appraisal is None else (appraisal,)


def _judgement_events(waiting: Waiting, event: Event) -> tuple[Event, ...]:
    """Return the events of an exchange that waits for a judgement, once that comes or can no longer come; else none."""
    match event:
        case LlmCompleted() | LlmFailed() if is_awaited(waiting, event):
            return events_of_answer(waiting, event)
        case ClockFired(set_by=set_by) if set_by == topic_of(JudgementRequested):
            return events_without_answer(waiting, UNANSWERED)
        case ResponseEmitted() if waiting.local is not None:
            # The breaker still needs the appraisal, and nobody waits for the model's answer any more.
            return events_without_answer(waiting, ENDED)
    return ()


def _with_waiting(state: AppraisalState, message: Message, request: JudgementRequested) -> AppraisalState:
    now_ns, key = message.time_ns, message.session_key
    waiting_for = waiting_on(message.id, request)
    waiting = state.waiting.set(message.exchange, waiting_for, now_ns, _waiting_ns(state.settings))
    spent = state.spent.set(key, spent_after(state.spent.get(key), now_ns), now_ns, HOUR_NS)
    return msgspec.structs.replace(state, waiting=waiting, spent=spent)


def _with_pending(state: AppraisalState, message: Message, pending: PendingAnswer) -> AppraisalState:
    return msgspec.structs.replace(state, pending=state.pending.set(message.exchange, pending))


def _without_pending(state: AppraisalState, message: Message) -> AppraisalState:
    if message.exchange not in state.pending:
        return state
    return msgspec.structs.replace(state, pending=state.pending.delete(message.exchange))


def _with_input(state: AppraisalState, message: Message, completed: AppraisalCompleted) -> AppraisalState:
    embedding = from_text(completed.embedding)
    if embedding is None:
        return state
    before = state.sessions.get(message.session_key) or SessionMemory()
    name = embedder_in(completed.models)
    # Vectors of different models cannot be compared. The session starts over; only its count of topics is kept.
    memory = before if before.models == name else SessionMemory(models=name, named=before.named)
    after = with_input(memory, completed.conversation_topic, embedding, state.settings)
    sessions = state.sessions.set(message.session_key, after, message.time_ns, _session_generation_ns(state.settings))
    return msgspec.structs.replace(state, sessions=sessions)


def _settled(state: AppraisalState, message: Message) -> AppraisalState:
    if not message.exchange:
        return state
    lifetime_ns = state.settings.settled_lifetime_ms * _NS_PER_MS
    settled = state.settled.set(message.exchange, True, message.time_ns, lifetime_ns)
    return msgspec.structs.replace(state, settled=settled)


def _without_expired(state: AppraisalState, now_ns: int) -> AppraisalState:
    sessions = state.sessions.aged(now_ns, _session_generation_ns(state.settings))
    settled = state.settled.aged(now_ns, state.settings.settled_lifetime_ms * _NS_PER_MS)
    waiting, spent = state.waiting.aged(now_ns, _waiting_ns(state.settings)), state.spent.aged(now_ns, HOUR_NS)
    unchanged = sessions is state.sessions and settled is state.settled
    if unchanged and waiting is state.waiting and spent is state.spent:
        return state
    return msgspec.structs.replace(state, sessions=sessions, settled=settled, waiting=waiting, spent=spent)


def _waiting_ns(settings: AppraisalSettings) -> int:
    longest_ms = settings.trust.timeout_ms + settings.trust.grace_ms
    return max(settings.settled_lifetime_ms, longest_ms) * _NS_PER_MS


def _session_generation_ns(settings: AppraisalSettings) -> int:
    # Entries live for one to two generations. A generation is half the lifetime, so none outlives the lifetime.
    return max(1, settings.session_lifetime_ms * _NS_PER_MS // 2)
