"""Guardrails' state machine: loop families and biases of agents, folded from guardrails' own decisions.

A *loop* is one pass of a deliberation, such as a model's answer; its *family* is that loop with its reruns. It is
judged by its scores, which a *critic* gives: its sender, the actor appraisal, or a model. An external loop is a
deliberation that another engine reports. Fatigue grows with reruns that improve nothing; an override, a person's order,
lifts a limit.

loop.completed            -> the decision on an external loop; .repeated or .refused; or, if appraisal must score its
                          question and answer first, guardrails.appraisal_requested
loop.overridden           -> guardrails.overridden, or .refused if no such loop is known
appraisal.answer_appraised -> the decision on an answer of this system, or on an external loop that waits for it; or,
                          if a model is the critic, guardrails.critique_requested first
llm.completed, .failed    -> the decision for which a critique was requested
input.received            its text is kept if a model is the critic; llm.completed: so is a model's answer to it
response.emitted          both texts are dropped
guardrails.*              the family's scores, reruns and fatigue, and the agent's biases, are updated
guardrails.configured     the new settings apply
"""

from collections.abc import Iterable

import msgspec

from actors.guardrails.bias import Biases, with_loop
from actors.guardrails.critic import Critique, critique_call, critique_of
from actors.guardrails.external_loops import ExternalLoop, awaiting_critic, wants_critic, with_critique
from actors.guardrails.loop_family import Family, FamilyBefore, Limit, Loop, split_loop_id, with_judgement
from actors.guardrails.loop_judging import FinishedLoop, judge
from actors.guardrails.open_exchange import ANSWERING, OpenExchange, new_exchange, with_answer
from actors.guardrails.settings import GuardrailsSettings
from actors.guardrails.state import (
    DONE,
    State,
    family_of,
    has_valid_overrides,
    reopened_family_of,
    with_critique_asked,
    with_external_loop,
    with_family,
    with_lift,
    with_override,
    without_expired,
    without_external_loop,
)
from schemas.actor import Emission, Message
from schemas.event import Event, topic_of
from schemas.identity import content_hash
from schemas.vocabulary.appraisal import AnswerAppraised
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.guardrails import (
    AppraisalRequested,
    CritiqueRequested,
    GuardrailsFinalized,
    GuardrailsForceFinalized,
    GuardrailsOverridden,
    GuardrailsRefused,
    GuardrailsRepeated,
    GuardrailsRerunOrdered,
    LoopTrace,
)
from schemas.vocabulary.llm import LlmCompleted, LlmFailed
from schemas.vocabulary.loops import LoopCompleted, LoopOverridden
from schemas.vocabulary.responder import ResponseEmitted

LIMITS: tuple[Limit, ...] = ("max_reruns", "fatigue")
"""What an override may lift."""

_NS_PER_MS = 1_000_000


def decide(state: State, message: Message) -> Iterable[Event | Emission]:
    """Return the one event that a message leads to, if any; the module's docstring lists them."""
    state = without_expired(state, message.time_ns)
    exchange = state.pending.get(message.exchange)
    match message.event:
        case AnswerAppraised(request=request) as appraised if (waiting := state.outside.get(request)) is not None:
            return (_on_loop_appraised(state, message, appraised, waiting),)
        case LlmCompleted() | LlmFailed() as answer if (waiting := _loop_critiqued_by(state, answer)) is not None:
            critique = critique_of(answer.text) if isinstance(answer, LlmCompleted) else None
            return (_without_session(_decision(state, message, with_critique(waiting, critique, state.settings))),)
        case LoopCompleted() as completed:
            return (_on_completion(state, message, completed),)
        case LoopOverridden() as ordered:
            return (_on_override(state, message, ordered),)
        case AnswerAppraised() as appraised if appraised.loop_id:
            return _on_answer_appraised(state, message, appraised, exchange)
        case LlmCompleted() | LlmFailed() as answer if exchange is not None and _is_critique(exchange, answer):
            assert exchange.appraised is not None
            critique = critique_of(answer.text) if isinstance(answer, LlmCompleted) else None
            return (_decision(state, message, _loop_of_answer(exchange.appraised, critique, state.settings)),)
    return ()


def evolve(state: State, message: Message) -> State:
    """Fold a message into the state; never raises."""
    state = without_expired(state, message.time_ns)
    exchange = state.pending.get(message.exchange)
    match message.event:
        case (
            GuardrailsFinalized(trace=trace)
            | GuardrailsForceFinalized(trace=trace)
            | GuardrailsRerunOrdered(trace=trace)
        ):
            forced = isinstance(message.event, GuardrailsForceFinalized)
            return _after_decision(without_external_loop(state, trace.completion), message, trace, forced=forced)
        case GuardrailsRepeated(completion=completion):
            return without_external_loop(state, completion)
        case AnswerAppraised(request=request) as event if (waiting := state.outside.get(request)) is not None:
            return with_external_loop(state, message, request, msgspec.structs.replace(waiting, appraised=event))
        case GuardrailsOverridden() as overridden:
            return with_override(state, message, overridden)
        case LoopCompleted() as completed:
            return _after_completion(state, message, completed)
        case InputReceived(purpose="answer") as received if _is_new(state, message):
            return _with_exchange(state, message, new_exchange(received, state.settings))
        case LlmCompleted(purpose=purpose) as completed if exchange is not None and purpose in ANSWERING:
            return _with_exchange(state, message, with_answer(exchange, completed, state.settings))
        case AnswerAppraised() as appraised if exchange is not None and appraised.request == exchange.request:
            return _with_exchange(state, message, msgspec.structs.replace(exchange, appraised=appraised))
        case CritiqueRequested(completion=completion) if completion:
            return with_critique_asked(state, message, completion)
        case CritiqueRequested() if exchange is not None:
            return _with_exchange(state, message, msgspec.structs.replace(exchange, asked=message.id))
        case ResponseEmitted() if message.exchange:
            return _after_end(state, message)
    return state


# --- decisions


def _on_completion(state: State, message: Message, completed: LoopCompleted) -> Event | Emission:
    if completed.reflection_status != DONE:
        return GuardrailsRefused(loop_id=completed.loop_id, reason="status_not_done")
    finished = _loop_of_completion(completed, state.settings)
    if has_valid_overrides(state, message, completed):
        state = with_lift(state, message, completed)
    family = reopened_family_of(state, message, completed.loop_id)
    if family is not None:
        state = with_family(state, message, completed.loop_id, family)
    if wants_critic(completed, state.settings) and not _decided_by(state, message, completed.loop_id):
        waiting = awaiting_critic(finished, completed, message.id, state.settings)
        request = AppraisalRequested(
            loop_id=completed.loop_id, completion=message.id, question=waiting.question, answer=waiting.answer
        )
        # Appraisal keeps its state by session. So each family is appraised in a session of its own.
        return Emission(request, session=f"loop {content_hash(split_loop_id(completed.loop_id)[0])[:16]}", exchange="")
    return _decision(state, message, finished)


def _loop_of_completion(completed: LoopCompleted, settings: GuardrailsSettings) -> FinishedLoop:
    scored = completed.alignment_score is not None or completed.drift_score is not None
    persona = completed.orchestrator_persona or settings.persona
    return FinishedLoop(
        loop_id=completed.loop_id,
        alignment=completed.alignment_score,
        drift=completed.drift_score,
        critics_conflict=completed.critics_conflict,
        bias_tags=completed.bias_tags,
        orchestrator_persona=persona,
        reflection_persona=persona,
        source="caller" if scored else "none",
        max_reruns=completed.max_reruns,
    )


def _on_loop_appraised(state: State, message: Message, appraised: AnswerAppraised, waiting: ExternalLoop) -> Emission:
    """Return the decision on an external loop that appraisal has scored, or the request for a model's critique."""
    if state.settings.loop_critic == "llm":
        request = critique_call(appraised.loop_id, waiting.question, waiting.answer, state.settings)
        call = msgspec.structs.replace(request.call, timeout_ms=state.settings.loop_critic_timeout_ms)
        return _without_session(msgspec.structs.replace(request, call=call, completion=appraised.request))
    found = msgspec.structs.replace(waiting, appraised=appraised)
    return _without_session(_decision(state, message, with_critique(found, None, state.settings)))


def _loop_critiqued_by(state: State, answer: LlmCompleted | LlmFailed) -> ExternalLoop | None:
    completion = state.critiques.get(answer.request)
    return None if completion is None else state.outside.get(completion)


def _without_session(event: Event) -> Emission:
    return Emission(event, session="", exchange="")


def _on_override(state: State, message: Message, ordered: LoopOverridden) -> Event:
    if family_of(state, message.agent, ordered.loop_id) is None:
        return GuardrailsRefused(loop_id=ordered.loop_id, reason="unknown_loop")
    return GuardrailsOverridden(
        loop_id=ordered.loop_id,
        family=split_loop_id(ordered.loop_id)[0],
        override_fatigue=ordered.override_fatigue,
        override_max_reruns=ordered.override_max_reruns,
        overridden_by=ordered.override_by,
        override_reason=ordered.override_reason,
        lasts_ms=state.settings.override_lifetime_ms,
    )


def _on_answer_appraised(
    state: State, message: Message, appraised: AnswerAppraised, exchange: OpenExchange | None
) -> tuple[Event, ...]:
    if state.settings.critic == "llm" and exchange is not None and exchange.request == appraised.request:
        if exchange.asked:
            return ()
        if exchange.answer.strip() and not _decided_by(state, message, appraised.loop_id):
            return (critique_call(appraised.loop_id, exchange.question, exchange.answer, state.settings),)
    return (_decision(state, message, _loop_of_answer(appraised, None, state.settings)),)


def _decision(state: State, message: Message, finished: FinishedLoop) -> Event:
    decided_by = _decided_by(state, message, finished.loop_id)
    if decided_by:
        return GuardrailsRepeated(loop_id=finished.loop_id, decided=decided_by, completion=finished.completion)
    family = family_of(state, message.agent, finished.loop_id) or Family()
    biases = state.biases.get(message.agent) or Biases()
    return judge(family, biases, finished, message.time_ns, state.settings)


def _loop_of_answer(
    appraised: AnswerAppraised, critique: Critique | None, settings: GuardrailsSettings
) -> FinishedLoop:
    """Return the scores of an answer of this system: a model's critique, else appraisal's; none if no critic is set."""
    persona = settings.persona
    if settings.critic == "off":
        return FinishedLoop(
            loop_id=appraised.loop_id, orchestrator_persona=persona, reflection_persona=persona, source="none"
        )
    if critique is None:
        return FinishedLoop(
            loop_id=appraised.loop_id,
            alignment=appraised.alignment,
            drift=appraised.drift,
            bias_tags=appraised.bias_tags,
            orchestrator_persona=persona,
            reflection_persona=persona,
            source="features",
        )
    return FinishedLoop(
        loop_id=appraised.loop_id,
        alignment=critique.alignment,
        drift=critique.drift,
        bias_tags=(*appraised.bias_tags, *critique.bias_tags),
        orchestrator_persona=persona,
        reflection_persona=settings.critic_persona,
        source="llm",
    )


def _decided_by(state: State, message: Message, loop_id: str) -> str:
    """Return the id of the event that judged a loop before; empty if none did."""
    family = family_of(state, message.agent, loop_id)
    return "" if family is None else family.decided(loop_id)


def _is_critique(exchange: OpenExchange, answer: LlmCompleted | LlmFailed) -> bool:
    """Whether a model's answer is the critique that is waited for; the failure of an unreadable request has no id."""
    if not exchange.asked or exchange.appraised is None:
        return False
    if isinstance(answer, LlmFailed) and not answer.request:
        return answer.failed_topic == topic_of(CritiqueRequested)
    return answer.request == exchange.asked


# --- folding


def _after_decision(state: State, message: Message, trace: LoopTrace, *, forced: bool) -> State:
    settings, now_ns = state.settings, message.time_ns
    family = (
        reopened_family_of(state, message, trace.loop_id) or family_of(state, message.agent, trace.loop_id) or Family()
    )
    limits = tuple(limit for limit in LIMITS if limit in trace.rerun_trigger)
    ended = FamilyBefore(family.reruns, family.fatigue, limits) if forced and limits else None
    if trace.own_limit:
        family = msgspec.structs.replace(family, max_reruns=trace.max_reruns)
    loop = Loop(trace.loop_id, message.id, trace.alignment_score, trace.drift_score, ended)
    family = with_judgement(family, loop, trace.rerun_count, trace.reflection_fatigue, settings.family_loops)
    state = with_family(state, message, trace.loop_id, family)
    if trace.repetition_counts:
        biases = state.biases.get(message.agent) or Biases()
        # A loop that a bias has ended does not count for that bias; the docstring of ``bias`` says why.
        seen = [tag for tag in trace.repetition_counts if tag not in trace.repeated_tags]
        biases = with_loop(biases, seen, trace.family, now_ns, settings)
        kept = state.biases.set(message.agent, biases, now_ns, settings.bias_window_ms * _NS_PER_MS)
        state = msgspec.structs.replace(state, biases=kept)
    exchange = state.pending.get(message.exchange)
    if exchange is None or exchange.appraised is None:
        return state
    return _with_exchange(state, message, msgspec.structs.replace(exchange, appraised=None, asked=""))


def _after_completion(state: State, message: Message, completed: LoopCompleted) -> State:
    """Return the state after a completion: with its overrides in force, and its loop kept if it needs a critic."""
    if completed.reflection_status != DONE:
        return state
    if has_valid_overrides(state, message, completed):
        state = with_lift(state, message, completed)
    reopens = reopened_family_of(state, message, completed.loop_id) is not None
    judged_before = bool(_decided_by(state, message, completed.loop_id)) and not reopens
    if not wants_critic(completed, state.settings) or judged_before:
        return state
    finished = _loop_of_completion(completed, state.settings)
    return with_external_loop(
        state, message, message.id, awaiting_critic(finished, completed, message.id, state.settings)
    )


def _is_new(state: State, message: Message) -> bool:
    # An input repeated after its exchange ended must not be kept: no further end would drop it.
    known = message.exchange in state.pending or state.ended.get(message.exchange)
    return state.settings.critic == "llm" and bool(message.exchange) and not known


def _with_exchange(state: State, message: Message, exchange: OpenExchange) -> State:
    return msgspec.structs.replace(state, pending=state.pending.set(message.exchange, exchange))


def _after_end(state: State, message: Message) -> State:
    lifetime_ns = state.settings.ended_lifetime_ms * _NS_PER_MS
    return msgspec.structs.replace(
        state,
        pending=state.pending.delete(message.exchange) if message.exchange in state.pending else state.pending,
        ended=state.ended.set(message.exchange, True, message.time_ns, lifetime_ns),
    )
