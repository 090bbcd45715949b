"""The outcomes of a drift: a thought, a skip, or a request to a model; and when the next drift is due. Pure.

A drift is an idle agent's attempt at a thought about what memory found: from a first concept (a term that occurred in
remembered exchanges; ``seed`` is its id) to an episode, one of these exchanges. ``strategy`` says how the first concept
was chosen: one that is fading, recent, salient, or any. The composer puts it into fixed sentences, or a model is asked
for its words.
"""

from typing import Literal

from actors.contract.answers.credentials import masked
from actors.drift.agent_state import AgentState, Cycle, SynthesisRequest, reason_to_skip, shortest_cooldown_left_ms
from actors.drift.draws import NO_PAUSE, Pause, draw_pause
from actors.drift.settings import DriftSettings
from actors.drift.thought_texts import WordedThought, compose_thought, read_thought, synthesis_call
from schemas.actor import Emission, Message
from schemas.event import Event
from schemas.vocabulary.drift import DriftScheduled, DriftSkipped, DriftSynthesisRequested, DriftThought, Skip
from schemas.vocabulary.llm import UNANSWERED
from schemas.vocabulary.memory import MemoryWandered
from schemas.vocabulary.reflex import ReflexAnswerBlocked, ReflexAnswerPassed

WITHHELD = "withheld"
"""Why a thought is the composer's: reflex withholds what the model wrote."""

_WITHOUT_TIMER: frozenset[Skip] = frozenset(("busy", "no_episode", "unanswered"))
"""Skips after which no timer is set: the end of the next exchange schedules the next drift.

``unanswered``: the request is not repeated, since it stays in the log until memory runs again and answers it.
"""


def schedule_next(message: Message, settings: DriftSettings) -> Emission:
    """Return the event that schedules the next drift at the usual time."""
    return of_agent(DriftScheduled(**draw_pause(message.id, settings)._asdict()))


def skip_drift(reason: Skip, message: Message, pause: Pause, *, seed: str = "", activation: float = 0.0) -> Emission:
    """Return the event that skips a drift, and schedules the next one if waiting can change anything.

    ``seed`` and ``activation`` are those of what memory found, if it was asked.
    """
    pause = NO_PAUSE if reason in _WITHOUT_TIMER else pause
    return of_agent(DriftSkipped(reason=reason, seed=seed, activation=activation, **pause._asdict()))


def events_of_timeout(cycle: Cycle, message: Message, pause: Pause) -> tuple[Emission, ...]:
    """Return the events of a drift that has taken too long. The end of the next exchange schedules the next drift."""
    request = cycle.asked
    if request is None:
        return (skip_drift("unanswered", message, pause),)
    thought = _thought_event(
        request.upon, compose_thought(request.upon, cycle.kind), request.session, reason=UNANSWERED
    )
    return thought, of_agent(DriftScheduled(**NO_PAUSE._asdict()))


def events_of_wandering(
    agent: AgentState, cycle: Cycle, wandered: MemoryWandered, message: Message, settings: DriftSettings
) -> tuple[Emission, ...]:
    """Return the events that follow from what memory found."""
    skip = reason_to_skip(agent, wandered, settings)
    if skip is not None:
        pause = _longer_pause(agent, skip, message, settings)
        return (skip_drift(skip, message, pause, seed=wandered.seed, activation=wandered.activation),)
    if settings.synthesis == "llm":
        return (
            _of_session(
                DriftSynthesisRequested(request=cycle.started, call=synthesis_call(wandered, settings)), message.session
            ),
        )
    return _thought_event(wandered, compose_thought(wandered, cycle.kind), message.session), schedule_next(
        message, settings
    )


def _longer_pause(agent: AgentState, skip: Skip, message: Message, settings: DriftSettings) -> Pause:
    pause = draw_pause(message.id, settings, agent.fruitless)
    if skip != "no_seed":
        return pause
    cooldown_left_ms = shortest_cooldown_left_ms(agent, message.time_ns, settings)
    return (
        NO_PAUSE
        if cooldown_left_ms is None
        else pause._replace(wake_after_ms=max(pause.wake_after_ms, cooldown_left_ms))
    )


def events_of_verdict(
    cycle: Cycle,
    request: SynthesisRequest,
    verdict: ReflexAnswerPassed | ReflexAnswerBlocked,
    message: Message,
    settings: DriftSettings,
) -> tuple[Emission, ...]:
    """Return the events of a model's answer that reflex has read: its thought, or the composer's if it is withheld."""
    if isinstance(verdict, ReflexAnswerBlocked):
        return events_without_answer(cycle, request, WITHHELD, message, settings)
    spans = tuple((each.kind, *each.span) for each in verdict.secrets) if verdict.masked else ()
    thought = read_thought(masked(request.answer, spans))
    if thought is None:  # the whole answer is masked, since the secret is in an encoding
        return events_without_answer(cycle, request, WITHHELD, message, settings)
    return _thought_event(request.upon, thought, request.session, by="llm"), schedule_next(message, settings)


def events_without_answer(
    cycle: Cycle, request: SynthesisRequest, reason: str, message: Message, settings: DriftSettings
) -> tuple[Emission, ...]:
    """Return the events of a model's answer that cannot be used: the composer's thought, with the reason."""
    composed = compose_thought(request.upon, cycle.kind)
    return _thought_event(request.upon, composed, request.session, reason=reason), schedule_next(message, settings)


def _thought_event(
    wandered: MemoryWandered,
    worded: WordedThought,
    session: str,
    *,
    by: Literal["composer", "llm"] = "composer",
    reason: str = "",
) -> Emission:
    # The thought is addressed to its session, but the next timer to the agent. So these are two events.
    assert wandered.strategy is not None, "memory names the strategy of what it found"
    event = DriftThought(
        kind=worded.kind,
        text=worded.text,
        concept=wandered.concept,
        seed=wandered.seed,
        strategy=wandered.strategy,
        activation=wandered.activation,
        episode=wandered.episode,
        by=by,
        reason=reason,
    )
    return _of_session(event, session)


def of_agent(event: Event) -> Emission:
    """Return an event addressed to the agent, without a session."""
    return Emission(event, session="", exchange="")


def _of_session(event: Event, session: str) -> Emission:
    return Emission(event, session=session, exchange="")
