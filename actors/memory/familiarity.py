"""Computes how much is known about the topic of an exchange, in the numbers that the router scores with. Pure.

A turn is one of the session's latest exchanges, a gist an exchange's summary in one line, an episode what is remembered
of it, a fact what a person stated. A memory's energy, from 0 to 1, is how strongly it is recalled.
"""

from collections.abc import Sequence

from actors.memory.agent_memory import AgentMemory
from actors.memory.layers.facts import CurrentValues, on_topic
from actors.memory.layers.session import Session
from actors.memory.pending import Pending
from actors.memory.settings import MemorySettings
from schemas.vocabulary.memory import Familiarity, Layer, Recollection

GISTS_WARM, FACTS_WARM, TURNS_WARM = 5, 5, 4
"""Counts of gists, facts and turns at which each part of the warmth reaches its maximum."""

RELEVANT_ENERGY = 0.35
"""Least energy of a memory that is relevant to an input, not merely recalled."""

TEXT_LAYERS: frozenset[Layer] = frozenset({"fact", "episode", "gist", "turn"})
"""Layers that hold texts; a concept is only a word that occurred."""


def warmth(gists: int, facts: int, turns: int) -> float:
    """Return the warmth of a context, that is how much is known about it, from 0 to 1.

    It is 0.4 min(gists/5, 1) + 0.3 min(facts/5, 1) + 0.3 min(turns/4, 1).
    """
    return round(
        0.4 * min(gists / GISTS_WARM, 1.0) + 0.3 * min(facts / FACTS_WARM, 1.0) + 0.3 * min(turns / TURNS_WARM, 1.0), 6
    )


def familiarity_of(
    memory: AgentMemory,
    session: Session,
    pending: Pending,
    now_ns: int,
    settings: MemorySettings,
    recollections: Sequence[Recollection] = (),
) -> Familiarity:
    """Return how familiar the topic of an exchange is; ``recollections`` are the agent's memories recalled for it.

    A relevant memory counts like one on the same topic, whichever session it came from. ``world_state_present`` says
    that the agent knows a fact besides those counted. ``bearing`` is the highest energy of a recalled text.
    """
    relevant = [each for each in recollections if each.energy >= RELEVANT_ENERGY]
    own = sum(gist.topic == pending.topic for gist in session.fresh_gists(now_ns, settings))
    gists = own + sum(each.layer == "episode" for each in relevant)
    keys = _keys(memory, pending, {each.id for each in relevant if each.layer == "fact"})
    return Familiarity(
        context_warmth=warmth(gists, len(keys), len(session.turns)),
        working_memory_turns=len(session.turns),
        gist_count=gists,
        fact_count=len(keys),
        fact_keys=keys,
        world_state_present=len(CurrentValues(memory.facts)) > len(keys),
        conversation_topic=pending.topic,
        topic_confidence=pending.topic_confidence,
        is_new_topic=pending.is_new_topic,
        session_exchange_count=pending.exchanges_before,
        bearing=max((each.energy for each in recollections if each.layer in TEXT_LAYERS), default=0.0),
    )


def _keys(memory: AgentMemory, pending: Pending, recalled: set[str]) -> tuple[str, ...]:
    """Return the keys of facts: those on the exchange's topic, the latest first, then those that were recalled."""
    keys = on_topic(memory.facts, pending.session, pending.topic)
    known = ((statements[-1].number, key) for key, statements in memory.facts.items() if key not in keys)
    return (*keys, *(key for number, key in sorted(known, reverse=True) if f"fact:{number}" in recalled))
