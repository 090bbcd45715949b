"""Which messages concern an ACT loop: its own events, and the answers to its requests. Pure.

An ACT loop gathers information, from memory and specialists (external services that answer questions), before an
exchange is answered. In each iteration it plans actions and waits for their results.
"""

import msgspec

from actors.act.loop import (
    Asked,
    Loop,
    begin_actions,
    begin_delegation,
    open_actions,
    with_delegate_answer,
    with_guard_verdict,
    with_iteration,
    with_memory_results,
    with_open_actions_failed,
    with_plan,
    with_unchecked_answer,
)
from actors.act.settings import ActSettings
from schemas.actor import Message
from schemas.event import Event, topic_of
from schemas.vocabulary.act import (
    ActActionsRequested,
    ActDelegationRequested,
    ActIterated,
    ActPlanRequested,
    ActTimedOut,
)
from schemas.vocabulary.delegate import DelegateAnswered, DelegateFailed
from schemas.vocabulary.intuition import IntuitionResultPassed, IntuitionResultRejected
from schemas.vocabulary.llm import LlmCompleted, LlmFailed
from schemas.vocabulary.memory import MemoryActionsAnswered
from schemas.vocabulary.reflex import ReflexAnswerBlocked, ReflexAnswerPassed


def with_message(loop: Loop, message: Message, settings: ActSettings) -> Loop | None:
    """Return a loop with an own event or an answer folded in; None for any other message."""
    match message.event:
        case ActPlanRequested():
            return msgspec.structs.replace(loop, asked=Asked(message.id, message.time_ns))
        case ActActionsRequested(actions=actions):
            return begin_actions(loop, actions, message.id, message.time_ns)
        case ActDelegationRequested(action=action):
            return begin_delegation(loop, action, message.id, message.time_ns)
        case ActTimedOut():
            return with_open_actions_failed(loop)
        case ActIterated() as event:
            return with_iteration(loop, event, settings)
        case LlmCompleted() as event if is_plan(loop, event):
            return with_plan(loop, event, message.id)
    return with_answer(loop, message, settings)


def with_answer(loop: Loop, message: Message, settings: ActSettings) -> Loop | None:
    """Return a loop with an answer to one of its requests; None for any other message."""
    underway = loop.underway
    if underway is None:
        return None
    match message.event:
        case MemoryActionsAnswered(request=request, results=results) if request == underway.request:
            return with_memory_results(loop, results, message.time_ns, settings)
        case DelegateAnswered(request=request, index=index) as answer if (index, request) in _open_delegations(loop):
            return with_unchecked_answer(loop, answer, message.id)
        case ReflexAnswerPassed(source=source) | ReflexAnswerBlocked(source=source) as verdict:
            return _with_guard_verdict(loop, source, "reflex", verdict)
        case IntuitionResultPassed(source=source) | IntuitionResultRejected(source=source) as verdict:
            return _with_guard_verdict(loop, source, "intuition", verdict)
        case DelegateFailed(request=request, index=index, reason=reason) if (index, request) in _open_delegations(loop):
            return with_delegate_answer(loop, index, reason)
        case DelegateFailed(request="", reason=reason) if len(_open_delegations(loop)) == 1:
            # The failure of an unreadable question does not name it, but only one question is open.
            return with_delegate_answer(loop, _open_delegations(loop)[0][0], reason)
    return None


def _with_guard_verdict(loop: Loop, source: str, guard: str, verdict: Event) -> Loop | None:
    """Return a loop after a guard has checked the answer in the event ``source``; None if no such answer is open."""
    being_checked = loop.underway.unread if loop.underway is not None else ()
    still_open = {index for index, _ in _open_delegations(loop)}
    unchecked = next(
        (each for each in being_checked if each.source == source and each.answer.index in still_open), None
    )
    return None if unchecked is None else with_guard_verdict(loop, unchecked, guard, verdict)


def _open_delegations(loop: Loop) -> tuple[tuple[int, str], ...]:
    """Return the open questions to specialists: the index of the action, and the id of the request."""
    if loop.underway is None:
        return ()
    still_open = {action.index for action in open_actions(loop.underway)}
    return tuple(each for each in loop.underway.delegations if each[0] in still_open)


def checked_plan(loop: Loop, event: ReflexAnswerPassed | ReflexAnswerBlocked) -> LlmCompleted | None:
    """Return the plan that reflex has checked, if a loop waits for it; else None."""
    return loop.asked.plan if loop.asked is not None and loop.asked.source == event.source else None


def is_plan(loop: Loop, event: LlmCompleted | LlmFailed) -> bool:
    """Whether a model's event is the one that a loop waits for.

    The failure of an unreadable request has no request id; but a loop asks for one plan at a time.
    """
    if loop.asked is None:
        return False
    if isinstance(event, LlmFailed) and not event.request:
        return event.failed_topic == topic_of(ActPlanRequested)
    return event.request == loop.asked.request and event.purpose == "act"
