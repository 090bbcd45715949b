"""What an agent remembers. Owner: ``memory``."""

from functools import partial
from typing import Annotated, Literal

import msgspec

from schemas.actor import Scope
from schemas.effectors.model_calls import Tokens
from schemas.entry import Entry, own_entries, own_events
from schemas.event import Event, Personal, Unit
from schemas.vocabulary.drift import Strategy

Layer = Literal["turn", "gist", "fact", "episode", "concept"]
"""The layer of memory.

``turn``: what was said in the session lately (working memory). ``gist``: an exchange in one line (short term).
``fact``: a value under a key (medium term). ``episode``: an exchange, with how much it mattered (episodic).
``concept``: a word, with those that were met together with it (semantic).
"""

Skill = Literal["recall", "memorize", "introspect", "associate", "delegate"]
"""What an action of the ACT loop can do; all but ``delegate`` are performed by memory.

``recall``: find memories for a query. ``memorize``: keep a fact. ``introspect``: say how much memory knows.
``associate``: find the concepts that were met together with those of a query. ``delegate``: ask an outside specialist.
"""

RetiredWhy = Literal["replaced", "corrected", "ended", "withdrawn"]
"""Why a fact is retired.

``replaced``: another value was stated. ``corrected``: a person said that it was wrong. ``ended``: a person said
that it had ended. ``withdrawn``: the person asked to have it forgotten.
"""

NO_LONGER_SO = " (no longer so)"
"""End of the text of a recollection of an exchange in which a fact was stated that has been retired since."""

Count = Annotated[int, msgspec.Meta(ge=0)]

SESSIONS_AT_ONCE = 1_000
"""How many sessions one ``memory.turns_forgotten`` names at most."""


class Recollection(msgspec.Struct, frozen=True, kw_only=True):
    """A memory that was recalled: ``energy`` says how strongly.

    ``id`` names it within the agent's memory for good. ``tokens`` estimates the length of ``text``. ``echo``: no
    person stated it. A person only asked, and the rest is the agent's own answer; or it is a thought of the agent's, or
    a mere word; or what was stated in it is retired.
    """

    id: str
    layer: Layer
    text: Personal
    energy: Unit
    tokens: Tokens
    echo: bool = False


class Familiarity(msgspec.Struct, frozen=True, kw_only=True):
    """How much is known about an exchange, in the numbers that the router scores with.

    ``context_warmth`` is 0.4 min(gists/5, 1) + 0.3 min(facts/5, 1) + 0.3 min(turns/4, 1). Turns are those of the
    session's working memory. Gists and facts are those on the exchange's topic, and those relevant to what is said,
    from any session of the agent; an episode of another session counts as a gist. ``bearing`` is how relevant the most
    relevant of all memories is. ``world_state_present``: the agent knows a fact besides those counted. Exchanges are
    the session's before this one. The topic and its numbers are appraisal's.
    """

    context_warmth: Unit
    working_memory_turns: Count
    gist_count: Count
    fact_count: Count
    fact_keys: tuple[Personal, ...]
    world_state_present: bool
    conversation_topic: str
    topic_confidence: Unit
    is_new_topic: bool
    session_exchange_count: Count
    bearing: Unit = 0.0


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    """Something known: ``value`` under ``key``. A later value of a key replaces the earlier one."""

    key: Personal
    value: Personal


class Retired(msgspec.Struct, frozen=True, kw_only=True):
    """A retired value of ``key``; ``fact`` is its number in the ids of recollections.

    ``replaced`` says whether the key has another value instead, ``exchanges`` are the remembered ones that stated it.
    """

    key: Personal
    value: Personal
    fact: Count
    why: RetiredWhy
    replaced: bool
    exchanges: tuple[Count, ...] = ()


class MemoryRecalled(Event, frozen=True, kw_only=True, tag="forged_id.memory.recalled"):
    """The memories recalled for an exchange that goes on to deliberation: echoes last, the strongest first.

    ``told`` are the facts that the input states, ``retired`` those that it takes back or replaces. The answer may use
    them, and memory keeps these facts of the exchange and no others.
    """

    familiarity: Familiarity
    recollections: tuple[Recollection, ...]
    told: tuple[Fact, ...] = ()
    retired: tuple[Retired, ...] = ()


class MemoryRemembered(Event, frozen=True, kw_only=True, tag="forged_id.memory.remembered"):
    """What stays of an answered exchange: a gist, facts, an episode, and concepts met together.

    ``salience`` is how much the episode matters.
    """

    conversation_topic: str
    gist: Personal
    facts: tuple[Fact, ...]
    concepts: tuple[Personal, ...]
    salience: Unit


class FactsRetired(Event, frozen=True, kw_only=True, tag="forged_id.memory.facts_retired"):
    """Facts are retired because of what was stated or memorized in an exchange; its events hold what replaces them."""

    retired: Annotated[tuple[Retired, ...], msgspec.Meta(min_length=1)]


class Introspection(msgspec.Struct, frozen=True, kw_only=True):
    """What memory knows of itself.

    ``feeling_of_knowing`` is the best similarity of anything to the question, ``recall_failure_rate`` the share of the
    agent's latest recalls that found nothing, ``layers`` the number of memories in each, ``skills`` how often each
    skill was used. ``context_warmth`` and ``world_state_present`` are as in
    :class:`Familiarity`.
    """

    context_warmth: Unit
    feeling_of_knowing: Unit
    recall_failure_rate: Unit
    layers: dict[str, int]
    skills: dict[str, int]
    world_state_present: bool


class ActionResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an action. ``reason`` is empty where it is ok, else a code such as ``unknown_skill``."""

    index: Count
    skill: Skill
    ok: bool
    reason: str = ""
    recollections: tuple[Recollection, ...] = ()
    introspection: Introspection | None = None


class MemoryActionsAnswered(Event, frozen=True, kw_only=True, tag="forged_id.memory.actions_answered"):
    """The results of the actions that an ACT iteration asked memory for; ``memorize`` takes effect with this event.

    ``request`` is the id of ``act.actions_requested``; ``stored`` holds what was memorized.
    """

    request: str
    iteration: Count
    results: tuple[ActionResult, ...]
    stored: tuple[Fact, ...] = ()


class MemoryForgotten(Event, frozen=True, kw_only=True, tag="forged_id.memory.forgotten"):
    """What an operator ordered to be forgotten is out of memory: a whole session, or a fact by its key.

    ``count`` is the number of memories dropped. With a fact go the ``exchanges`` and ``facts`` that hold its words, by
    their numbers: those in the ids of recollections. The words in the log itself become unreadable when the session's
    key is destroyed, which the shell does for a session.
    """

    what: Literal["session", "fact"]
    key: Personal
    by: str
    why: str
    count: Count
    exchanges: tuple[Count, ...] = ()
    facts: tuple[Count, ...] = ()


class Activation(msgspec.Struct, frozen=True, kw_only=True):
    """A concept that another one activated: its id, and with how much energy.

    Its ``term`` is left out where the episode does not contain it: it may be another session's word.
    """

    concept: str
    energy: Unit
    term: Personal = ""


class MemoryWandered(Event, frozen=True, kw_only=True, tag="forged_id.memory.wandered"):
    """What memory found for a drift; it belongs to the session of the episode, and has words of no other.

    ``strategy`` is the first that had a concept to begin with. ``decaying``: the weakest of those that fade
    (0.2 < strength < 2.0). ``recent``: one from the latest episode. ``salient``: one from the most salient episode of 7
    days. ``random``: any whose confidence (from 0 to 1, by the number of its episodes) is 0.4 or more. ``seed`` is its
    id, ``concept`` its term, ``strength`` how strong it still is. ``activations`` are the strongest other concepts that
    it activated, ``activation`` the highest of all. ``episode`` is the latest that holds both it and the strongest of
    them, ``text`` what is remembered of that.

    ``reason`` is empty, or says why there is nothing: ``no_episode`` of 7 days, or ``no_seed`` by any strategy.
    ``request`` is the id of ``drift.started``.
    """

    request: str
    reason: Literal["", "no_episode", "no_seed"]
    strategy: Strategy | None = None
    seed: str = ""
    concept: Personal = ""
    strength: Annotated[float, msgspec.Meta(ge=0.0)] = 0.0
    activations: tuple[Activation, ...] = ()
    activation: Unit = 0.0
    episode: str = ""
    text: Personal = ""


class TurnsForgotten(Event, frozen=True, kw_only=True, tag="forged_id.memory.turns_forgotten"):
    """Sessions of an agent in which words of a fact to be forgotten were said: they are not to be quoted any more.

    One event names at most :data:`SESSIONS_AT_ONCE`; for more sessions there are several events.
    """

    sessions: Annotated[tuple[str, ...], msgspec.Meta(min_length=1, max_length=SESSIONS_AT_ONCE)]


MemoryConfigured, MemoryFailed = own_events("memory")


COLD = Familiarity(
    context_warmth=0.0,
    working_memory_turns=0,
    gist_count=0,
    fact_count=0,
    fact_keys=(),
    world_state_present=False,
    conversation_topic="unclassified",
    topic_confidence=0.0,
    is_new_topic=True,
    session_exchange_count=0,
)
"""The familiarity of a first exchange."""

SAMPLE_RECOLLECTION = Recollection(id="fact:3", layer="fact", text="name: Ada", energy=0.8, tokens=4)

_entry = partial(Entry, owner="memory", scope=Scope.SESSION)

ENTRIES = (
    _entry(
        meaning="What comes to mind for an exchange under deliberation, and how familiar its ground is.",
        sample=MemoryRecalled(familiarity=COLD, recollections=(SAMPLE_RECOLLECTION,)),
    ),
    _entry(
        meaning="What stays of an answered exchange: gist, facts, episode, concepts.",
        sample=MemoryRemembered(
            conversation_topic="topic-1",
            gist="Ada asked for the capital of Peru.",
            facts=(Fact(key="name", value="Ada"),),
            concepts=("capital", "peru"),
            salience=0.4,
        ),
    ),
    _entry(
        meaning="Facts hold no longer: replaced, corrected, ended or withdrawn by what was told.",
        sample=FactsRetired(retired=(Retired(key="name", value="Chad", fact=2, why="corrected", replaced=True),)),
    ),
    _entry(
        meaning="Memory's results for the actions of an ACT iteration.",
        sample=MemoryActionsAnswered(
            request="0" * 32,
            iteration=0,
            results=(ActionResult(index=0, skill="recall", ok=True, recollections=(SAMPLE_RECOLLECTION,)),),
        ),
    ),
    _entry(
        meaning="A session or a fact is out of an agent's memory, by an operator's order.",
        sample=MemoryForgotten(what="session", key="", by="ann", why="the person asked for it", count=12),
    ),
    _entry(
        meaning="What an idle agent's drifting mind came upon: a concept, what it brings up, and an episode of both.",
        sample=MemoryWandered(
            request="0" * 32,
            reason="",
            strategy="recent",
            seed="concept:97",
            concept="peru",
            strength=1.4,
            activations=(Activation(concept="concept:96", energy=0.7, term="capital"),),
            activation=0.7,
            episode="episode:3",
            text="Asked: What is the capital of Peru?",
        ),
    ),
    _entry(
        scope=Scope.AGENT,
        meaning="In these sessions words of a fact were said that is forgotten: nobody quotes them any more.",
        sample=TurnsForgotten(sessions=("travel",)),
    ),
    *own_entries(
        MemoryConfigured,
        MemoryFailed,
        owner="memory",
        scope=Scope.AGENT,
        then="its exchange, if it has one, ends as FAILED",
        failed_topic="forged_id.arbiter.escalated",
    ),
)
