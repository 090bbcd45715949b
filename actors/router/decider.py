"""The router's state machine: which mode an exchange is answered in, and how good that choice was.

The modes: in substance (RESPOND), by asking back (CLARIFY), after looking things up (ACT), by a brief word
(ACKNOWLEDGE), or not at all (IGNORE).

input.received          -> router.feedback_observed, if it comments on the session's previous exchange;
                        the text is kept until its exchange ends
appraisal.completed     the kind of turn that the text is, is kept with it
memory.recalled         -> router.mode_selected, or router.tiebreak_requested where two modes are too close and a model
                        decides between them: once, for an exchange whose text is kept
llm.completed, .failed  -> router.mode_selected, for the tie-break that was asked
act.finished            -> router.mode_selected without ACT, where ACT had been selected
response.emitted        the text is dropped; the session remembers what was answered, and in which mode
feedback.given          -> router.feedback_observed, if it is about its exchange's mode and not a repeat;
                        then the session's next input is no feedback on that exchange
operator.forget_ordered the session is dropped, with the hashes of its last input's words
memory.turns_forgotten  the sessions in which words of a forgotten fact were said are dropped
router.mode_selected    the topic's streak of low confidence grows or ends
regulator.adjusted,     the offsets to the agent's weights from here on
  .reverted
regulator.scheduled,    the offsets of an agent that was dropped here and is active again; which agents are active
  .cycle_completed
router.configured       the settings from here on
"""

from collections.abc import Iterable
from typing import Literal

import msgspec

from actors.router.feedback import Answered, explicit_feedback, observe_feedback, words_of
from actors.router.regulator_offsets import (
    NO_OFFSETS,
    Offsets,
    Overlay,
    RegulatorEvent,
    offsets_in_force,
    with_regulation,
)
from actors.router.selection import Context, needs_tiebreak, reroute, select_mode, signals_of, with_tiebreak
from actors.router.settings import RouterSettings, effective_weights
from actors.router.tiebreak import outcome_of, tiebreak_call
from schemas.actor import Message, session_key
from schemas.event import Event, topic_of
from schemas.persistent import ExpiringMap, Map
from schemas.vocabulary.act import ActFinished
from schemas.vocabulary.appraisal import AppraisalCompleted, TurnReading
from schemas.vocabulary.feedback import FeedbackGiven
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.llm import LlmCompleted, LlmFailed
from schemas.vocabulary.memory import Familiarity, MemoryRecalled, TurnsForgotten
from schemas.vocabulary.operator import ForgetOrdered
from schemas.vocabulary.regulator import Adjusted, CycleCompleted, RegulatorScheduled, Reverted
from schemas.vocabulary.responder import ResponseEmitted
from schemas.vocabulary.router import Feedback, FeedbackObserved, Mode, ModeSelected, TiebreakRequested

_NS_PER_MS = 1_000_000


class Streak(msgspec.Struct, frozen=True):
    """A topic and its latest confidences, oldest first, all low: a confidence that is not low ends the streak."""

    topic: str
    confidences: tuple[float, ...]


class SessionMemory(msgspec.Struct, frozen=True, kw_only=True):
    """What the router remembers of a session.

    ``previous_mode`` is the mode of the last answer. ``act_unproductive`` says that an ACT loop found nothing; only the
    session's next decision depends on it. ``answered`` is the last answered exchange, until the next input. ``streaks``
    are the topics whose last decision had low confidence, the latest last. ``seen_ns`` is the time of the last event.
    """

    previous_mode: Mode | None = None
    act_unproductive: bool = False
    answered: Answered | None = None
    streaks: tuple[Streak, ...] = ()
    seen_ns: int = 0


class Pending(msgspec.Struct, frozen=True, kw_only=True):
    """An open exchange: its text, and the progress of its routing.

    ``stage`` is ``heard`` until memory has answered; ``asked`` once the event ``request`` has asked a tie-breaker, with
    ``selected`` as the choice by scores alone; ``acting`` while an ACT loop runs, with ``selected`` as the first
    choice; ``routed`` once its mode is recorded. ``turn`` is appraisal's reading of the text. ``familiarity`` is kept
    from memory's event until the router's own.
    """

    text: str
    stage: Literal["heard", "asked", "acting", "routed"] = "heard"
    turn: TurnReading | None = None
    familiarity: Familiarity | None = None
    request: str = ""
    selected: ModeSelected | None = None


class State(msgspec.Struct, frozen=True):
    """A router partition: settings, memories by session, open exchanges, and recently ended exchanges.

    ``overlays`` hold the regulator's offsets to the weights, by agent. ``told`` holds the explicit feedback that
    exchanges have had recently.
    """

    settings: RouterSettings = RouterSettings()
    sessions: ExpiringMap[SessionMemory] = ExpiringMap()
    pending: Map[str, Pending] = Map()
    ended: ExpiringMap[bool] = ExpiringMap()
    overlays: Map[str, Overlay] = Map()
    told: ExpiringMap[Feedback] = ExpiringMap()


def decide(state: State, message: Message) -> tuple[Event, ...]:
    """Return the events that a message leads to; see the module's docstring."""
    event, settings = message.event, state.settings
    if isinstance(event, InputReceived):
        return _feedback(state, message, event.text) if event.purpose == "answer" else ()
    if isinstance(event, FeedbackGiven):
        observed = explicit_feedback(event, message.exchange)
        is_new = observed is not None and state.told.get(message.exchange) != observed.feedback
        return (observed,) if observed is not None and is_new else ()
    pending = state.pending.get(message.exchange)
    if pending is None:
        return ()
    match event:
        case MemoryRecalled(familiarity=familiarity) if pending.stage == "heard":
            selected = _select(state, message, pending, familiarity)
            if settings.tiebreak == "llm" and needs_tiebreak(selected, settings):
                return (tiebreak_call(pending.text, selected, settings.tiebreak_timeout_ms),)
            return (selected,)
        case LlmCompleted() | LlmFailed() if pending.selected is not None and _answers(pending, event):
            return (with_tiebreak(pending.selected, _outcome(pending.selected, event), settings),)
        case ActFinished(findings=findings) if pending.stage == "acting" and pending.selected is not None:
            return (reroute(pending.selected, settings, _offsets(state, message), findings),)
    return ()


def evolve(state: State, message: Message) -> State:
    """Fold a message into the state; never raises."""
    pending = state.pending.get(message.exchange)
    match message.event:
        case InputReceived(text=text, purpose="answer") if _is_new(state, message):
            memory = msgspec.structs.replace(session_memory(state, message), answered=None)
            return _remember(state, message, memory, Pending(text=text))
        case AppraisalCompleted(turn=turn) if pending is not None:
            return _keep(state, message, msgspec.structs.replace(pending, turn=turn))
        case MemoryRecalled(familiarity=familiarity) if pending is not None and pending.stage == "heard":
            return _keep(state, message, msgspec.structs.replace(pending, familiarity=familiarity))
        case TiebreakRequested() if pending is not None and pending.familiarity is not None:
            selected = _select(state, message, pending, pending.familiarity)
            asked = Pending(text=pending.text, stage="asked", request=message.id, selected=selected)
            return _keep(state, message, asked)
        case ModeSelected() as selected:
            memory = _with_decision(session_memory(state, message), selected, state.settings)
            return _remember(state, message, memory, _routed(pending, selected))
        case ActFinished(productive=productive) if pending is not None and pending.stage == "acting":
            memory = msgspec.structs.replace(session_memory(state, message), act_unproductive=not productive)
            return _remember(state, message, memory, pending)
        case ResponseEmitted() as response:
            return _ended(state, message, response, pending)
        case FeedbackGiven():
            return _with_explicit_feedback(state, message)
        case FeedbackObserved(of_exchange=exchange, feedback=feedback) if exchange == message.exchange:
            told = state.told.set(exchange, feedback, message.time_ns, _lifetime_ns(state))
            return msgspec.structs.replace(state, told=told)
        case ForgetOrdered(what="session"):
            return _without_sessions(state, message.agent, [message.session])
        case TurnsForgotten(sessions=sessions):
            return _without_sessions(state, message.agent, sessions)
        case Adjusted() | Reverted() | RegulatorScheduled() | CycleCompleted() as event:
            return _with_regulation(state, message, event)
    return state


def session_memory(state: State, message: Message) -> SessionMemory:
    """Return the memory of a message's session at that message; a blank one after a lifetime without events."""
    memory = state.sessions.get(message.session_key)
    if memory is None or message.time_ns - memory.seen_ns > _lifetime_ns(state):
        return SessionMemory()
    return memory


def _is_new(state: State, message: Message) -> bool:
    # An input that is repeated after the end of its exchange would never be dropped again.
    return message.exchange not in state.pending and not state.ended.get(message.exchange)


def _feedback(state: State, message: Message, text: str) -> tuple[Event, ...]:
    previous = session_memory(state, message).answered
    if previous is None or not _is_new(state, message):
        return ()
    at_once = message.time_ns - previous.at_ns <= state.settings.feedback_within_ms * _NS_PER_MS
    observed = observe_feedback(text, previous, at_once=at_once)
    return () if observed is None else (observed,)


def _offsets(state: State, message: Message) -> Offsets:
    overlay = state.overlays.get(message.agent)
    return NO_OFFSETS if overlay is None else overlay.offsets


def _select(state: State, message: Message, pending: Pending, familiarity: Familiarity) -> ModeSelected:
    memory = session_memory(state, message)
    context = Context(
        topic=familiarity.conversation_topic,
        previous_mode=memory.previous_mode,
        act_unproductive=memory.act_unproductive,
        recent_confidences=_streak(memory, familiarity.conversation_topic),
    )
    offsets = _offsets(state, message)
    selected = select_mode(signals_of(pending.text, familiarity, pending.turn), context, state.settings, offsets)
    regulated = offsets_in_force(effective_weights(state.settings), offsets) if offsets else {}
    return msgspec.structs.replace(selected, regulated=regulated)


def _answers(pending: Pending, event: LlmCompleted | LlmFailed) -> bool:
    """Whether a model's answer is the one to the tie-break that was asked.

    The failure of an unreadable request has no request id; but an exchange has one tie-break at most.
    """
    if pending.stage != "asked":
        return False
    if isinstance(event, LlmFailed) and not event.request:
        return event.failed_topic == topic_of(TiebreakRequested)
    return event.request == pending.request and event.purpose == "tiebreak"


def _outcome(selected: ModeSelected, event: LlmCompleted | LlmFailed) -> str:
    if isinstance(event, LlmFailed):
        return f"failed:{event.reason}"
    return outcome_of(event.text, selected.tiebreaker_candidates)


def _routed(pending: Pending | None, selected: ModeSelected) -> Pending | None:
    if pending is None:
        return None
    if selected.terminal_mode is None:
        return Pending(text=pending.text, stage="acting", selected=selected)
    return Pending(text=pending.text, stage="routed")


def _with_explicit_feedback(state: State, message: Message) -> State:
    """Return the state in which the next input is no feedback on an exchange that has had explicit feedback."""
    memory = state.sessions.get(message.session_key)
    if memory is None or memory.answered is None or memory.answered.exchange != message.exchange:
        return state
    memory = msgspec.structs.replace(memory, answered=None)
    # This does not count as use of the session, so ``seen_ns`` stays.
    sessions = state.sessions.set(message.session_key, memory, message.time_ns, _lifetime_ns(state))
    return msgspec.structs.replace(state, sessions=sessions)


def _without_sessions(state: State, agent: str, sessions: Iterable[str]) -> State:
    kept = state.sessions
    for session in sessions:
        kept = kept.delete(session_key(agent, session))
    return msgspec.structs.replace(state, sessions=kept)


def _lifetime_ns(state: State) -> int:
    return state.settings.session_lifetime_ms * _NS_PER_MS


def _keep(state: State, message: Message, pending: Pending) -> State:
    """Return the state with an open exchange replaced."""
    return msgspec.structs.replace(state, pending=state.pending.set(message.exchange, pending))


def _remember(state: State, message: Message, memory: SessionMemory, pending: Pending | None) -> State:
    """Return the state with a session's memory replaced, and an open exchange, if one is given."""
    seen = msgspec.structs.replace(memory, seen_ns=message.time_ns)
    sessions = state.sessions.set(message.session_key, seen, message.time_ns, _lifetime_ns(state))
    remembered = msgspec.structs.replace(state, sessions=sessions)
    return remembered if pending is None else _keep(remembered, message, pending)


def _streak(memory: SessionMemory, topic: str) -> tuple[float, ...]:
    """Return the latest low confidences on a topic; empty if the last one was not low."""
    return next((streak.confidences for streak in memory.streaks if streak.topic == topic), ())


def _with_decision(memory: SessionMemory, selected: ModeSelected, settings: RouterSettings) -> SessionMemory:
    # A blank input is not scored, and the first decision before a re-route was counted already.
    if selected.selected_mode == "IGNORE" or selected.rerouted:
        return memory
    topic = selected.conversation_topic
    streaks = tuple(streak for streak in memory.streaks if streak.topic != topic)
    if selected.router_confidence < settings.thresholds.low_confidence:
        latest = (*_streak(memory, topic), selected.router_confidence)[-settings.thresholds.streak :]
        streaks = (*streaks, Streak(topic, latest))[-settings.topics_remembered :]
    return msgspec.structs.replace(memory, streaks=streaks, act_unproductive=False)


def _ended(state: State, message: Message, response: ResponseEmitted, pending: Pending | None) -> State:
    memory = _with_answer(session_memory(state, message), message, response, pending.text if pending else "")
    remembered = _remember(state, message, memory, None)
    lifetime_ns = state.settings.ended_lifetime_ms * _NS_PER_MS
    return msgspec.structs.replace(
        remembered,
        pending=state.pending.delete(message.exchange) if pending else state.pending,
        ended=state.ended.set(message.exchange, True, message.time_ns, lifetime_ns),
    )


def _with_answer(memory: SessionMemory, message: Message, response: ResponseEmitted, text: str) -> SessionMemory:
    # Only an answer in a mode can be judged: a blocked or failed input was not routed.
    mode = response.mode
    if response.action != "EXECUTED" or mode is None:
        return memory
    answered = Answered(
        exchange=message.exchange,
        mode=mode,
        first_mode=response.first_mode or mode,
        words=words_of(text) if mode == "RESPOND" else (),
        at_ns=message.time_ns,
    )
    return msgspec.structs.replace(memory, previous_mode=mode, answered=answered)


def _with_regulation(state: State, message: Message, event: RegulatorEvent) -> State:
    weights, most_agents = effective_weights(state.settings), state.settings.agents
    overlays = with_regulation(state.overlays, message.agent, event, message.time_ns, weights, most_agents)
    return state if overlays is state.overlays else msgspec.structs.replace(state, overlays=overlays)
