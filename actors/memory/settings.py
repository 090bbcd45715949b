"""Settings of memory: how much is kept of each layer, for how long, and how it comes to mind."""

from typing import Annotated

import msgspec

from schemas.event import Milliseconds, Unit

MOST_CONCEPTS = 32
"""Concepts of an exchange at most."""

_HOUR_MS = 3_600_000

Few = Annotated[int, msgspec.Meta(ge=1, le=100)]
"""A number of things that a person could still look through."""

Strength = Annotated[float, msgspec.Meta(ge=0.0, le=64.0)]
"""A strength of concepts, 1 for each of its meetings at first."""


class MemorySettings(msgspec.Struct, frozen=True, kw_only=True):
    """What memory decides with. A lowered capacity holds from the next thing of its kind on.

    Attributes:
        turns: Exchanges in a session's working memory.
        gists: Gists kept of a session; the oldest go.
        gist_lifetime_ms: A gist comes to mind no longer than this after its exchange.
        session_lifetime_ms: A session's turns and gists come to mind no longer than this after its last exchange; they
            are dropped at the partition's first message past two of these lifetimes.
        facts_per_topic: Facts kept of a topic of a session; the oldest go.
        facts: The latest facts told to an agent that are kept.
        episodes: Episodes kept of an agent; the oldest go.
        concepts: Concepts kept of an agent; those not met for longest go.
        meetings: The latest meetings of a concept, from which its strength, confidence and links follow.
        concepts_per_exchange: Concepts that an exchange is read for; all of them are linked with one another.
        half_life_ms: Time in which a concept's strength halves.
        depth: Hops that activation spreads at most.
        spread: What a hop leaves of the activation, before the link's own strength counts.
        recollections: What comes to mind at most, the strongest first: more than an answer will have before it, so that
            a review of its prompt has something to compare with.
        floor: Energy from which a memory comes to mind at all.
        recalls_judged: The latest recalls that the failure rate is taken over.
        weights: Memories of an agent that have a weight; those without a seat for longest lose it.
        weight_fade_exchanges: The agent's exchanges over which a memory's weight fades, evenly, if no seat renews it.
        thoughts: Thoughts of an idle agent that are kept; the oldest go.
        thoughts_recalled: Thoughts that come to mind at once, each on another concept.
        thought_lifetime_ms: A thought comes to mind no longer than this.
        wander_back_ms: An idle mind wanders only where there is an episode no older than this.
        fading_above: Strength above which a concept may be fading, rather than gone.
        fading_below: Strength below which it may be.
        sure_from: Confidence from which any concept may be begun with.
        strengthened_by: What a thought adds to the strength of the fading concept that it began with.
        agents: Agents of a partition that are remembered; an eighth of them, used least lately, goes when there are
            more.
        private: Agents to whom keys, e-mail addresses and numbers of seven digits or more, such as those of cards,
            accounts and telephones, are no facts; ``*`` stands for all.
        ended_lifetime_ms: A repeated input of an exchange is recognised for at least this long after its end.
    """

    turns: Annotated[int, msgspec.Meta(ge=1, le=16)] = 4
    gists: Few = 50
    gist_lifetime_ms: Milliseconds = 24 * _HOUR_MS
    session_lifetime_ms: Milliseconds = 24 * _HOUR_MS
    facts_per_topic: Few = 50
    facts: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 1_000
    episodes: Annotated[int, msgspec.Meta(ge=1, le=200_000)] = 20_000
    concepts: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 1_000
    meetings: Annotated[int, msgspec.Meta(ge=1, le=64)] = 12
    concepts_per_exchange: Annotated[int, msgspec.Meta(ge=1, le=MOST_CONCEPTS)] = 8
    half_life_ms: Milliseconds = 7 * 24 * _HOUR_MS
    depth: Annotated[int, msgspec.Meta(ge=1, le=4)] = 2
    spread: Unit = 0.7
    recollections: Few = 12
    floor: Unit = 0.25
    recalls_judged: Few = 20
    weights: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 1_000
    weight_fade_exchanges: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = 512
    thoughts: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 500
    thoughts_recalled: Annotated[int, msgspec.Meta(ge=0, le=100)] = 2
    thought_lifetime_ms: Milliseconds = 7 * 24 * _HOUR_MS
    wander_back_ms: Milliseconds = 7 * 24 * _HOUR_MS
    fading_above: Strength = 0.2
    fading_below: Strength = 2.0
    sure_from: Unit = 0.4
    strengthened_by: Annotated[float, msgspec.Meta(ge=0.0, le=1.0)] = 0.1
    agents: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = 10_000
    private: tuple[str, ...] = ()
    ended_lifetime_ms: Milliseconds = 600 * 1000
