"""The outcomes of a drift: a thought, a skip, or a request to a model; and when the next drift is due. Pure."""

from typing import Literal

from actors.drift.composing import Worded, ask, compose, worded
from actors.drift.draws import NO_PAUSE, Pause, next_pause
from actors.drift.mind import Asked, Cycle, Mind, first_waking_ms, nothing_in
from actors.drift.settings import DriftSettings
from schemas.actor import Emission, Message
from schemas.event import Event
from schemas.vocabulary.drift import DriftScheduled, DriftSkipped, DriftSynthesisRequested, DriftThought, Skip
from schemas.vocabulary.llm import ANSWER_INVALID, UNANSWERED, LlmCompleted, LlmFailed
from schemas.vocabulary.memory import MemoryWandered

_UNTIL_TALKED_TO: frozenset[Skip] = frozenset(("busy", "no_episode", "unanswered"))
"""Skips after which no timer is set: the end of the next exchange schedules the next drift.

A request that nobody answered stays in the log until its owner is back, so it is not repeated.
"""


def scheduled(message: Message, settings: DriftSettings) -> Emission:
    """Return the event that schedules the next drift at the usual time."""
    return of_agent(DriftScheduled(**next_pause(message.id, settings)._asdict()))


def skipped(reason: Skip, message: Message, pause: Pause, *, seed: str = "", activation: float = 0.0) -> Emission:
    """Return the event that skips a drift, and schedules the next one if waiting can change anything."""
    pause = NO_PAUSE if reason in _UNTIL_TALKED_TO else pause
    return of_agent(DriftSkipped(reason=reason, seed=seed, activation=activation, **pause._asdict()))


def given_up(cycle: Cycle, message: Message, pause: Pause) -> tuple[Emission, ...]:
    """Return the events of a drift that has taken too long. The end of the next exchange schedules the next drift."""
    asked = cycle.asked
    if asked is None:
        return (skipped("unanswered", message, pause),)
    thought = _thought(asked.upon, compose(asked.upon, cycle.kind), asked.session, reason=UNANSWERED)
    return thought, of_agent(DriftScheduled(**NO_PAUSE._asdict()))


def come_upon(
    mind: Mind, cycle: Cycle, upon: MemoryWandered, message: Message, settings: DriftSettings
) -> tuple[Emission, ...]:
    """Return the events that follow from what memory found."""
    nothing = nothing_in(mind, upon, settings)
    if nothing is not None:
        pause = _longer_pause(mind, nothing, message, settings)
        return (skipped(nothing, message, pause, seed=upon.seed, activation=upon.activation),)
    if settings.synthesis == "llm":
        return (_of_session(DriftSynthesisRequested(request=cycle.started, call=ask(upon, settings)), message.session),)
    return _thought(upon, compose(upon, cycle.kind), message.session), scheduled(message, settings)


def _longer_pause(mind: Mind, nothing: Skip, message: Message, settings: DriftSettings) -> Pause:
    pause = next_pause(message.id, settings, mind.fruitless)
    if nothing != "no_seed":
        return pause
    waking_ms = first_waking_ms(mind, message.time_ns, settings)
    return NO_PAUSE if waking_ms is None else pause._replace(wake_after_ms=max(pause.wake_after_ms, waking_ms))


def answered(
    cycle: Cycle, asked: Asked, event: LlmCompleted | LlmFailed, message: Message, settings: DriftSettings
) -> tuple[Emission, ...]:
    """Return the events of a model's answer: its thought, or the composer's if the answer holds none."""
    found = worded(event.text) if isinstance(event, LlmCompleted) else None
    if found is not None:
        return _thought(asked.upon, found, asked.session, by="llm"), scheduled(message, settings)
    reason = event.reason if isinstance(event, LlmFailed) else ANSWER_INVALID
    composed = compose(asked.upon, cycle.kind)
    return _thought(asked.upon, composed, asked.session, reason=reason), scheduled(message, settings)


def _thought(
    upon: MemoryWandered,
    found: Worded,
    session: str,
    *,
    by: Literal["composer", "llm"] = "composer",
    reason: str = "",
) -> Emission:
    # The thought is addressed to its session, but the next timer to the agent. So these are two events.
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
    return _of_session(thought, session)


def of_agent(event: Event) -> Emission:
    """Return an event addressed to the agent, without a session."""
    return Emission(event, session="", exchange="")


def _of_session(event: Event, session: str) -> Emission:
    return Emission(event, session=session, exchange="")
