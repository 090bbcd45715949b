"""Drift: thoughts that an agent has while nobody is talking to it. Owner: ``drift``."""

from functools import partial
from typing import Annotated, Literal

import msgspec

from schemas.actor import Scope
from schemas.effectors.model_calls import ChatMessage, ModelCall
from schemas.entry import Entry, Severity, own_entries, own_events
from schemas.event import Event, Personal, Unit, Wake

Strategy = Literal["decaying", "recent", "salient", "random"]
"""Where a drift looks for the concept it begins with; see ``memory.wandered``."""

Kind = Literal["reflection", "question", "hypothesis"]
"""The kind of a thought."""

Skip = Literal["busy", "fatigued", "no_episode", "no_seed", "weak", "repeated", "unanswered", "forgotten"]
"""Why there is no thought.

``busy``: an exchange is open. ``fatigued``: the agent's latest thoughts have used up its budget of activation.
``no_episode``: there was no episode lately. ``no_seed``: no strategy has a concept. ``weak``: what the concept brings
up is weak. ``repeated``: the agent had the same thought lately. ``unanswered``: memory did not answer. ``forgotten``:
what a model was asked about is forgotten.
"""

Energy = Annotated[float, msgspec.Meta(ge=0.0)]
"""Activation that drifting has spent: what concepts in memory have passed on to others, summed up; 0 or more."""


class DriftScheduled(Event, frozen=True, kw_only=True, tag="forged_id.drift.scheduled"):
    """When an agent's mind drifts next, if it is idle then; 0: after the end of the next exchange.

    ``long_gap``: the time until then is one of those that are longer by chance. ``draws`` are the random numbers, from
    0 to 1, for the jitter, for whether the time is a long one, and for how long; their generator is seeded with the id
    of the message that led to this event.
    """

    wake_after_ms: Wake
    long_gap: bool
    draws: tuple[Unit, ...]


class DriftStarted(Event, frozen=True, kw_only=True, tag="forged_id.drift.started"):
    """An idle agent whose fatigue is low enough lets its mind drift; memory answers with what it finds.

    ``strategies`` are asked in this order until one has a concept, and ``pick`` picks among its concepts. ``resting``
    are concepts not to begin with, since they were used lately, by their ids in memory. ``kind`` is the kind of thought
    to make. ``fatigue`` is the activation that its latest thoughts have spent. ``draws`` are the random numbers used,
    in [0, 1). Unless the drift ends before, its actor is woken ``wake_after_ms`` later and gives up.
    """

    strategies: tuple[Strategy, ...]
    pick: Unit
    kind: Kind
    resting: tuple[str, ...]
    fatigue: Energy
    draws: tuple[Unit, ...]
    wake_after_ms: Wake


class DriftSkipped(Event, frozen=True, kw_only=True, tag="forged_id.drift.skipped"):
    """No thought this time, and when the next is due; 0: after the end of the next exchange.

    ``seed`` is the concept that led to no thought, by its id in memory, empty for none; it rests like one that did.
    ``activation`` is the highest of the concepts that it activated, 0 where memory found nothing.
    ``long_gap`` and ``draws`` are as in ``drift.scheduled``; after several skips in a row the time is longer than they
    give.
    """

    reason: Skip
    seed: str
    activation: Unit
    wake_after_ms: Wake
    long_gap: bool
    draws: tuple[Unit, ...]


class DriftSynthesisRequested(Event, frozen=True, kw_only=True, tag="forged_id.drift.synthesis_requested"):
    """A model is asked to put a thought into words; ``request`` is the id of ``drift.started``."""

    request: str
    call: ModelCall


class DriftThought(Event, frozen=True, kw_only=True, tag="forged_id.drift.thought"):
    """A thought that came to an idle agent. Memory keeps it as a gist (one line) that any of its sessions can recall.

    It is about ``concept`` (its id in memory is ``seed``) and about ``episode``, also an id in memory. ``activation``
    is that of the other concept which ``concept`` activated most. The thought belongs to the session of that episode,
    has words of no other, and is forgotten with it. ``by`` says what put it into words: fixed sentences (``composer``)
    or a model (``llm``); where a model was asked in vain, ``reason`` says why.
    """

    kind: Kind
    text: Personal
    concept: Personal
    seed: str
    strategy: Strategy
    activation: Unit
    episode: str
    by: Literal["composer", "llm"]
    reason: str = ""


DriftConfigured, DriftFailed = own_events("drift")

_entry = partial(Entry, owner="drift", scope=Scope.AGENT)

ENTRIES = (
    _entry(
        meaning="When an agent's mind drifts next, if nobody is talking to it then.",
        sample=DriftScheduled(wake_after_ms=287_400, long_gap=False, draws=(0.43, 0.71, 0.2)),
    ),
    _entry(
        meaning="An idle agent lets its mind drift: where it looks for something to think about.",
        sample=DriftStarted(
            strategies=("decaying", "salient", "recent", "random"),
            pick=0.31,
            kind="question",
            resting=("concept:64",),
            fatigue=0.7,
            draws=(0.12, 0.83, 0.4, 0.31, 0.5),
            wake_after_ms=120_000,
        ),
    ),
    _entry(
        meaning="An agent's mind did not drift, or came to nothing, and why.",
        sample=DriftSkipped(
            reason="weak",
            seed="concept:96",
            activation=0.233333,
            wake_after_ms=301_222,
            long_gap=False,
            draws=(0.5, 0.9, 0.1),
        ),
    ),
    _entry(
        scope=Scope.SESSION,
        meaning="A language model is asked to put an idle agent's thought into words.",
        asks="llm",
        sample=DriftSynthesisRequested(
            request="0" * 32,
            call=ModelCall(purpose="reflect", messages=(ChatMessage(role="user", content="What comes to mind?"),)),
        ),
    ),
    _entry(
        scope=Scope.SESSION,
        meaning="A thought that came to an idle agent, what set it off and what it rests on.",
        sample=DriftThought(
            kind="question",
            text="An idle question: what more is there between peru and capital?",
            concept="peru",
            seed="concept:97",
            strategy="recent",
            activation=0.7,
            episode="episode:3",
            by="composer",
        ),
    ),
    *own_entries(
        DriftConfigured,
        DriftFailed,
        owner="drift",
        scope=Scope.AGENT,
        then="nothing waits for it",
        failed_topic="forged_id.clock.fired",
        severity=Severity.WARNING,
    ),
)
