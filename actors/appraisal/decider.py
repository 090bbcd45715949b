"""Appraisal's state machine: an input in numbers, once, and what a session is remembered by. Pure.

input.received          -> appraisal.completed, unless the exchange was appraised or has ended; its text is kept
appraisal.completed     its embedding joins its session's stimuli and moves its topic
response.requested      a model is asked, and its answer waited for
llm.completed           -> appraisal.answer_appraised, where it is that answer
guardrails.appraisal_requested -> the same, of a loop outside
response.emitted        the exchange has ended: its text is dropped, a repetition of its input is not appraised
operator.allowance_recorded, operator.allowance_withdrawn  what they allow is not judged from the next input on
appraisal.configured    the settings from here on
"""

import msgspec

from actors.appraisal.answers import Awaited, appraised, appraised_outside, asked, requested
from actors.appraisal.judging import appraise, embedder_in, warm_up
from actors.appraisal.memory import Memory, remembering
from actors.appraisal.settings import AppraisalSettings
from actors.appraisal.vectors import from_text
from schemas.actor import Message, readable_settings
from schemas.allowances import Allowances
from schemas.event import Event
from schemas.persistent import Generations, Map
from schemas.vocabulary.allowances import AllowanceRecorded, AllowanceWithdrawn
from schemas.vocabulary.appraisal import AnswerAppraised, AppraisalCompleted, AppraisalConfigured
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.guardrails import AppraisalRequested
from schemas.vocabulary.llm import LlmCompleted
from schemas.vocabulary.precedents import ForgetOrdered
from schemas.vocabulary.responder import ResponseEmitted, ResponseRequested

_NS_PER_MS = 1_000_000


class AppraisalState(msgspec.Struct, frozen=True):
    """A partition: settings, the memory of each session, the exchanges appraised or ended lately, and those open."""

    settings: AppraisalSettings = AppraisalSettings()
    sessions: Generations[Memory] = Generations()
    settled: Generations[bool] = Generations()
    pending: Map[str, Awaited] = Map()
    allowances: Allowances = Allowances()


def warm(state: AppraisalState) -> None:
    """Load the models, so that no input waits for them."""
    warm_up(state.settings)


def decide(state: AppraisalState, message: Message) -> tuple[Event, ...]:
    """Appraise an input that is new, or a model's answer to it; nothing else is decided."""
    if isinstance(message.event, LlmCompleted):
        return _answered(state, message, message.event)
    if isinstance(message.event, AppraisalRequested):
        return (appraised_outside(message.event, state.settings),)
    if not isinstance(message.event, InputReceived) or state.settled.get(message.exchange):
        return ()
    # What has outlived its lifetime is not compared with, though no message has dropped it yet.
    state = _aged(state, message.time_ns)
    memory = state.sessions.get(message.session_key) or Memory()
    judged, allowed = state.allowances.judged(message.agent, message.event)
    found = appraise(memory, message.event, state.settings, message.models, judged)
    return (msgspec.structs.replace(found, allowed=allowed) if allowed else found,)


def evolve(state: AppraisalState, message: Message) -> AppraisalState:
    """Fold a message into the state; total. No model is asked: what was inferred is in the event."""
    state = _aged(state, message.time_ns)
    match message.event:
        case AppraisalCompleted() as completed:
            return _settled(_remembering(state, message, completed), message)
        case InputReceived(text=text) if message.exchange and not state.settled.get(message.exchange):
            return _waiting(state, message, asked(text))
        case ResponseRequested() as request if message.exchange in state.pending:
            return _waiting(state, message, requested(state.pending[message.exchange], message.id, request))
        case AnswerAppraised() if message.exchange in state.pending:
            awaited = msgspec.structs.replace(state.pending[message.exchange], request="")
            return _waiting(state, message, awaited)
        case ResponseEmitted():
            return _settled(_closed(state, message), message)
        case ForgetOrdered(what="session"):
            return _forgotten(state, message)
        case AllowanceRecorded() | AllowanceWithdrawn() as allowance:
            return msgspec.structs.replace(state, allowances=state.allowances.after(message.agent, allowance))
        case AppraisalConfigured() as configured:
            return _configured(state, configured)
    return state


def _answered(state: AppraisalState, message: Message, completed: LlmCompleted) -> tuple[Event, ...]:
    awaited = state.pending.get(message.exchange)
    if awaited is None or not awaited.request:
        return ()
    found = appraised(awaited, completed, state.settings)
    return () if found is None else (found,)


def _waiting(state: AppraisalState, message: Message, awaited: Awaited) -> AppraisalState:
    return msgspec.structs.replace(state, pending=state.pending.set(message.exchange, awaited))


def _closed(state: AppraisalState, message: Message) -> AppraisalState:
    if message.exchange not in state.pending:
        return state
    return msgspec.structs.replace(state, pending=state.pending.delete(message.exchange))


def _forgotten(state: AppraisalState, message: Message) -> AppraisalState:
    return msgspec.structs.replace(state, sessions=state.sessions.delete(message.session_key))


def _remembering(state: AppraisalState, message: Message, completed: AppraisalCompleted) -> AppraisalState:
    embedding = from_text(completed.embedding)
    if embedding is None:
        return state
    before = state.sessions.get(message.session_key) or Memory()
    name = embedder_in(completed.models)
    # Vectors of another model cannot be compared with these: the session starts afresh, its topics' numbers go on.
    memory = before if before.models == name else Memory(models=name, named=before.named)
    after = remembering(memory, completed.conversation_topic, embedding, state.settings)
    sessions = state.sessions.set(message.session_key, after, message.time_ns, _session_generation_ns(state.settings))
    return msgspec.structs.replace(state, sessions=sessions)


def _settled(state: AppraisalState, message: Message) -> AppraisalState:
    if not message.exchange:
        return state
    lifetime_ns = state.settings.settled_lifetime_ms * _NS_PER_MS
    settled = state.settled.set(message.exchange, True, message.time_ns, lifetime_ns)
    return msgspec.structs.replace(state, settled=settled)


def _aged(state: AppraisalState, now_ns: int) -> AppraisalState:
    sessions = state.sessions.aged(now_ns, _session_generation_ns(state.settings))
    settled = state.settled.aged(now_ns, state.settings.settled_lifetime_ms * _NS_PER_MS)
    if sessions is state.sessions and settled is state.settled:
        return state
    return msgspec.structs.replace(state, sessions=sessions, settled=settled)


def _configured(state: AppraisalState, configured: AppraisalConfigured) -> AppraisalState:
    settings = readable_settings(configured, AppraisalSettings)
    return state if settings is None else msgspec.structs.replace(state, settings=settings)


def _session_generation_ns(settings: AppraisalSettings) -> int:
    # Entries live for one to two generations, and nothing of a person longer than the lifetime.
    return max(1, settings.session_lifetime_ms * _NS_PER_MS // 2)
