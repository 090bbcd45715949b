"""The ACT loops of a partition: which are running, what each waits for, and what it does next.

An ACT loop gathers information, from memory and specialists (external services that answer questions), before an
exchange is answered. "Next" below stands for the requests of the next iteration (act.plan_requested; or
act.actions_requested and act.delegation_requested), or for act.finished.

input.received             the text is kept until its exchange is routed elsewhere, or its loop has ended
arbiter.escalated          the exchange's deadline becomes known
router.mode_selected       without a terminal mode, a loop begins -> the first requests
llm.completed              the plan is kept until reflex has checked it
reflex.answer_passed,      -> the requests that the plan asks for; or, if it is blocked or unreadable, act.iterated and
.answer_blocked,           next. A specialist's answer counts once reflex and intuition have passed it
intuition.result_passed,
.result_rejected
llm.failed                 -> act.iterated and next
memory.actions_answered,   the outcomes are kept; with the last outcome of an iteration -> act.iterated and next
delegate.answered, .failed
clock.fired                -> act.timed_out for each loop or iteration that has waited too long, act.iterated and next
response.emitted           the exchange's loop and text are dropped
act.configured             the new settings apply
"""

from collections.abc import Iterable

import msgspec

from actors.act.loop import (
    Asked,
    Loop,
    begin_actions,
    due_ns,
    elapsed_ms,
    is_productive,
    new_loop,
    open_actions,
    with_iteration,
    with_open_actions_failed,
)
from actors.act.loop_messages import checked_plan, is_plan, with_answer, with_message
from actors.act.planning import offline_plan, plan_call, read_plan
from actors.act.settings import ActSettings
from schemas.actor import Emission, Message
from schemas.event import Event, topic_of
from schemas.persistent import ExpiringMap, Map
from schemas.vocabulary.act import (
    ActActionsRequested,
    ActDelegationRequested,
    ActFinished,
    Action,
    ActIterated,
    ActPlanRequested,
    ActTimedOut,
    Termination,
)
from schemas.vocabulary.arbiter import ArbiterEscalated
from schemas.vocabulary.clock import ClockFired
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.llm import ANSWER_INVALID, LlmCompleted, LlmFailed
from schemas.vocabulary.reflex import ReflexAnswerBlocked, ReflexAnswerPassed
from schemas.vocabulary.responder import ResponseEmitted
from schemas.vocabulary.router import ModeSelected

_NS_PER_MS = 1_000_000
_OWN_TIMERS = frozenset(
    topic_of(event) for event in (ActPlanRequested, ActActionsRequested, ActDelegationRequested, ActFinished)
)
"""The events by which this actor sets its timer; a timer that another actor has set is not for it."""


class Pending(msgspec.Struct, frozen=True):
    """An exchange that may start a loop or has one: its session, text, deadline, and its loop if one is running."""

    session: str
    text: str
    deadline_ns: int
    loop: Loop | None = None


class State(msgspec.Struct, frozen=True):
    """Open exchanges, the exchanges of each session that have a loop (``acting``), and recently ended exchanges."""

    settings: ActSettings = ActSettings()
    pending: Map[str, Pending] = Map()
    acting: Map[str, tuple[str, ...]] = Map()
    ended: ExpiringMap[bool] = ExpiringMap()


def decide(state: State, message: Message) -> Iterable[Event | Emission]:
    """Return the events that a message leads to; see the module's docstring."""
    event = message.event
    if isinstance(event, ClockFired):
        return _time_out_session(state, message, event)
    pending = state.pending.get(message.exchange)
    if pending is None:
        return ()
    if isinstance(event, ModeSelected):
        begins = event.terminal_mode is None and pending.loop is None
        return _next_requests(state, message, _new_loop(state, message)) if begins else ()
    loop = pending.loop
    if loop is None:
        return ()
    if isinstance(event, LlmCompleted):
        return ()
    if isinstance(event, LlmFailed):
        # An iteration without a plan is one without result.
        reason = "malformed_plan" if event.reason == ANSWER_INVALID else "plan_failed"
        return _end_iteration(state, message, loop, reason) if is_plan(loop, event) else ()
    if isinstance(event, ReflexAnswerPassed | ReflexAnswerBlocked) and (plan := checked_plan(loop, event)) is not None:
        return _with_plan(state, message, loop, plan, event)
    answered = with_answer(loop, message, state.settings)
    if answered is None or answered.underway is None or open_actions(answered.underway):
        return ()
    return _end_iteration(state, message, answered)


def evolve(state: State, message: Message) -> State:
    """Fold a message into the state; never raises."""
    ended = state.ended.aged(message.time_ns, state.settings.ended_lifetime_ms * _NS_PER_MS)
    if ended is not state.ended:
        state = msgspec.structs.replace(state, ended=ended)
    event = message.event
    pending = state.pending.get(message.exchange)
    match event:
        case InputReceived(purpose="answer") if (
            pending is None and message.exchange and not ended.get(message.exchange)
        ):
            deadline_ns = message.time_ns + event.deadline_after_ms * _NS_PER_MS
            return _with_pending(state, message.exchange, Pending(message.session_key, event.text, deadline_ns))
        case ArbiterEscalated() if pending is not None:
            deadline_ns = min(pending.deadline_ns, message.time_ns + event.deadline_after_ms * _NS_PER_MS)
            return _with_pending(state, message.exchange, msgspec.structs.replace(pending, deadline_ns=deadline_ns))
        case ResponseEmitted():
            lifetime_ns = state.settings.ended_lifetime_ms * _NS_PER_MS
            remembered = ended.set(message.exchange, True, message.time_ns, lifetime_ns)
            return msgspec.structs.replace(_without(state, message.exchange), ended=remembered)
    if pending is None:
        return state
    if isinstance(event, ActFinished):
        return _without(state, message.exchange)
    if isinstance(event, ModeSelected):
        if event.terminal_mode is not None:
            return _without(state, message.exchange)
        return state if pending.loop is not None else _with_loop(state, message, _new_loop(state, message))
    loop = None if pending.loop is None else with_message(pending.loop, message, state.settings)
    return state if loop is None else _with_loop(state, message, loop)


def _with_plan(
    state: State, message: Message, loop: Loop, plan: LlmCompleted, verdict: ReflexAnswerPassed | ReflexAnswerBlocked
) -> Iterable[Event]:
    """Act on a model's plan after reflex's verdict; a blocked plan is an iteration without result."""
    if isinstance(verdict, ReflexAnswerBlocked):
        return _end_iteration(state, message, loop, "plan_withheld")
    actions = read_plan(plan.text, state.settings)
    if actions is None:
        return _end_iteration(state, message, loop, "malformed_plan")
    if not actions:
        return (_finished(state, message, loop, "plan_empty"),)
    return _requests(state, message, loop, actions)


def _end_iteration(
    state: State, message: Message, loop: Loop, reason: str = "", *, loop_expired: bool = False
) -> Iterable[Event]:
    """Record the end of an iteration, and continue; ``loop_expired``: the loop has no time left."""
    event = _iteration(loop, message, reason)
    after = with_iteration(loop, event, state.settings)
    if loop_expired:
        return (event, _finished(state, message, after, "timeout"))
    return (event, *_next_requests(state, message, after))


def _iteration(loop: Loop, message: Message, reason: str) -> ActIterated:
    """Return the event that records an iteration, as far as it has come."""
    outcomes = loop.underway.outcomes if loop.underway is not None else ()
    productive = any(map(is_productive, outcomes))
    by_index = sorted(outcomes, key=lambda outcome: outcome.performed.action.index)
    return ActIterated(
        iteration=loop.iteration,
        planner=loop.planner,
        performed=tuple(outcome.performed for outcome in by_index),
        productive=productive,
        elapsed_ms=elapsed_ms(loop, message.time_ns),
        reason=reason or ("" if productive else "nothing_found"),
    )


def _next_requests(state: State, message: Message, loop: Loop) -> Iterable[Event]:
    """Return the requests of a loop's next iteration, or its end."""
    settings = state.settings
    if message.time_ns >= loop.due_ns:
        return (_finished(state, message, loop, "timeout"),)
    if loop.iteration >= settings.max_iterations:
        return (_finished(state, message, loop, "max_iterations"),)
    text = state.pending[message.exchange].text
    if loop.planner == "llm":
        awaiting_plan = msgspec.structs.replace(loop, asked=Asked("", message.time_ns))
        call = plan_call(text, loop, settings)
        return (
            ActPlanRequested(
                iteration=loop.iteration, call=call, wake_after_ms=_wake_after_ms(state, message, awaiting_plan)
            ),
        )
    actions = offline_plan(text, loop)
    if not actions:
        return (_finished(state, message, loop, "plan_empty"),)
    return _requests(state, message, loop, actions)


def _requests(state: State, message: Message, loop: Loop, actions: tuple[Action, ...]) -> Iterable[Event]:
    wake_after_ms = _wake_after_ms(state, message, begin_actions(loop, actions, "", message.time_ns))
    own = tuple(action for action in actions if action.skill != "delegate")
    if own:
        yield ActActionsRequested(iteration=loop.iteration, actions=own, wake_after_ms=wake_after_ms)
    for action in actions:
        if action.skill == "delegate":
            yield ActDelegationRequested(
                iteration=loop.iteration,
                action=action,
                timeout_ms=state.settings.delegate_ms,
                wake_after_ms=wake_after_ms,
            )


def _finished(state: State, message: Message, loop: Loop, termination: Termination) -> ActFinished:
    return ActFinished(
        termination=termination,
        iterations=loop.iteration,
        productive=loop.productive,
        elapsed_ms=elapsed_ms(loop, message.time_ns),
        findings=loop.findings,
        wake_after_ms=_wake_after_ms(state, message, None),
    )


def _time_out_session(state: State, message: Message, event: ClockFired) -> Iterable[Emission]:
    """Continue each loop of the session that has waited too long, without what it has waited for."""
    if event.set_by not in _OWN_TIMERS:
        return
    # The clock that fired may be slightly ahead of the server's clock, which set the message's time.
    now_ns = max(message.time_ns, event.due_ns)
    # If the end of its exchange removed a loop, nothing wakes this actor for the other loops of the session until one
    # of them makes its next request, which sets the timer again. Until then their exchanges' own deadlines end them.
    for exchange in state.acting.get(message.session_key, ()):
        pending = state.pending[exchange]
        if pending.loop is None or due_ns(pending.loop, state.settings) > now_ns:
            continue
        as_exchange = msgspec.structs.replace(message, exchange=exchange)
        for each in _time_out_loop(state, as_exchange, pending.loop, loop_expired=pending.loop.due_ns <= now_ns):
            yield Emission(each, exchange=exchange)


def _time_out_loop(state: State, message: Message, loop: Loop, *, loop_expired: bool) -> Iterable[Event]:
    yield ActTimedOut(iteration=loop.iteration, what="loop" if loop_expired else "iteration")
    reason = "plan_failed" if loop.asked is not None else ""
    yield from _end_iteration(state, message, with_open_actions_failed(loop), reason, loop_expired=loop_expired)


def _wake_after_ms(state: State, message: Message, loop: Loop | None) -> int:
    """Return in how many milliseconds the clock must wake this actor for the session's loops; 0: never."""
    loops = [] if loop is None else [loop]
    for exchange in state.acting.get(message.session_key, ()):
        other = state.pending[exchange].loop
        if exchange != message.exchange and other is not None:
            loops.append(other)
    if not loops:
        return 0
    soonest = min(due_ns(each, state.settings) for each in loops)
    return max(1, -((message.time_ns - soonest) // _NS_PER_MS))  # rounded up


def _new_loop(state: State, message: Message) -> Loop:
    return new_loop(message.time_ns, state.pending[message.exchange].deadline_ns, state.settings)


def _with_pending(state: State, exchange: str, pending: Pending) -> State:
    return msgspec.structs.replace(state, pending=state.pending.set(exchange, pending))


def _with_loop(state: State, message: Message, loop: Loop) -> State:
    pending = msgspec.structs.replace(state.pending[message.exchange], loop=loop)
    kept = _with_pending(state, message.exchange, pending)
    acting = kept.acting.get(pending.session, ())
    if message.exchange in acting:
        return kept
    return msgspec.structs.replace(kept, acting=kept.acting.set(pending.session, (*acting, message.exchange)))


def _without(state: State, exchange: str) -> State:
    pending = state.pending.get(exchange)
    if pending is None:
        return state
    others = tuple(each for each in state.acting.get(pending.session, ()) if each != exchange)
    acting = state.acting
    if others:
        acting = acting.set(pending.session, others)
    elif pending.session in acting:
        acting = acting.delete(pending.session)
    return msgspec.structs.replace(state, pending=state.pending.delete(exchange), acting=acting)
