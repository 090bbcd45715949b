"""Settings of memory: how much is kept in each layer, for how long, and what is recalled."""

from typing import Annotated

import msgspec

from schemas.event import Milliseconds, Unit
from schemas.settings.unreachable_settings import at_most

MOST_CONCEPTS = 32
"""Most concepts of an exchange."""

_HOUR_MS = 3_600_000

SmallCount = Annotated[int, msgspec.Meta(ge=1, le=100)]
"""A number of things that a person could still look through."""

Strength = Annotated[float, msgspec.Meta(ge=0.0, le=64.0)]
"""A strength of concepts: each episode in which a concept occurs adds 1 at first."""


class MemorySettings(msgspec.Struct, frozen=True, kw_only=True):
    """What memory decides with. A lowered capacity applies from the next entry of its kind on.

    A gist is an exchange's summary in one line, an episode an exchange as the agent remembers it, a concept a term that
    occurred in episodes. A memory's energy, from 0 to 1, is how strongly it is recalled. Activation, from 0 to 1,
    spreads from a concept to those that occurred with it.

    Attributes:
        turns: Number of a session's latest exchanges that are kept as turns, with the person's words and the answer.
        gists: Gists kept of a session; the oldest are dropped.
        gist_lifetime_ms: A gist is recalled for this long after its exchange.
        session_lifetime_ms: A session's turns and gists are recalled for this long after its last exchange. They are
            dropped at the partition's first message after two of these lifetimes.
        facts_per_topic: Facts kept of a topic of a session; the oldest are dropped.
        facts: Facts kept of an agent; the oldest are dropped.
        episodes: Episodes kept of an agent; the oldest are dropped.
        concepts: Concepts kept of an agent; those that have not occurred for the longest time are dropped.
        meetings: How many of the episodes in which a concept occurred are kept with it: the latest. Its strength,
            confidence and links are computed from them.
        concepts_per_exchange: Most concepts read from an exchange; all of them are linked with one another.
        half_life_ms: Time in which a concept's strength halves.
        depth: Most hops from concept to concept over which activation spreads.
        spread: Factor on the activation for each hop, before the link's own strength.
        recollections: Most memories recalled, the strongest first. More than an answer will use, so that a review of
            its prompt can compare.
        floor: Least energy with which a memory is recalled.
        recalls_judged: Number of latest recalls from which the failure rate (the share that found nothing) is computed.
        weights: Most memories of an agent with a weight, which reviews of its prompts give; those not reviewed for the
            longest time lose it.
        weight_fade_exchanges: The agent's exchanges over which a memory's weight fades linearly if no review renews it.
        thoughts: Thoughts of an idle agent that are kept; the oldest are dropped.
        thoughts_recalled: Most thoughts recalled at once, each on another concept.
        thought_lifetime_ms: A thought is recalled for this long.
        wander_back_ms: An idle agent wanders (associates without any input) only if an episode is no older than this.
        fading_above: A concept whose strength is between this and ``fading_below`` is fading; a weaker one is gone.
        fading_below: See ``fading_above``.
        sure_from: Least confidence of a concept with which wandering may begin at random.
        strengthened_by: Strength that a thought adds to the fading concept it began with.
        agents: Agents of a partition that are remembered. If there are more, an eighth of them, used least recently, is
            dropped.
        private: Agents for which access keys, e-mail addresses and numbers of seven digits or more, such as those of
            cards, accounts and telephones, are never facts; ``*`` stands for all.
        ended_lifetime_ms: A repeated input of an exchange is recognised for at least this long after its end.
    """

    turns: Annotated[int, msgspec.Meta(ge=1, le=16)] = 4
    gists: SmallCount = 50
    gist_lifetime_ms: Milliseconds = 24 * _HOUR_MS
    session_lifetime_ms: Milliseconds = 24 * _HOUR_MS
    facts_per_topic: SmallCount = 50
    facts: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 1_000
    episodes: Annotated[int, msgspec.Meta(ge=1, le=200_000)] = 20_000
    concepts: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 1_000
    meetings: Annotated[int, msgspec.Meta(ge=1, le=64)] = 12
    concepts_per_exchange: Annotated[int, msgspec.Meta(ge=1, le=MOST_CONCEPTS)] = 8
    half_life_ms: Milliseconds = 7 * 24 * _HOUR_MS
    depth: Annotated[int, msgspec.Meta(ge=1, le=4)] = 2
    spread: Unit = 0.7
    recollections: SmallCount = 12
    floor: Unit = 0.25
    recalls_judged: SmallCount = 20
    weights: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 1_000
    weight_fade_exchanges: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = 512
    thoughts: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 500
    thoughts_recalled: Annotated[int, msgspec.Meta(ge=0, le=100)] = 2
    thought_lifetime_ms: Milliseconds = 7 * 24 * _HOUR_MS
    wander_back_ms: Milliseconds = 7 * 24 * _HOUR_MS
    fading_above: Annotated[Strength, at_most("fading_below")] = 0.2
    fading_below: Strength = 2.0
    sure_from: Unit = 0.4
    strengthened_by: Annotated[float, msgspec.Meta(ge=0.0, le=1.0)] = 0.1
    agents: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = 10_000
    private: tuple[str, ...] = ()
    ended_lifetime_ms: Milliseconds = 600 * 1000
