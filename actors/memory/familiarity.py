"""How much is known around an exchange, in the numbers that the router scores with. Pure."""

from actors.memory.facts import Current, on_topic
from actors.memory.mind import Mind
from actors.memory.pending import Pending
from actors.memory.session import Session
from actors.memory.settings import MemorySettings
from schemas.vocabulary.memory import Familiarity

GISTS_WARM, FACTS_WARM, TURNS_WARM = 5, 5, 4
"""Counts from which each part of the warmth is full (source M)."""


def warmth(gists: int, facts: int, turns: int) -> float:
    """Return the context's warmth: 0.4 min(gists/5, 1) + 0.3 min(facts/5, 1) + 0.3 min(turns/4, 1)."""
    return round(
        0.4 * min(gists / GISTS_WARM, 1.0) + 0.3 * min(facts / FACTS_WARM, 1.0) + 0.3 * min(turns / TURNS_WARM, 1.0), 6
    )


def familiarity_of(
    mind: Mind, session: Session, pending: Pending, now_ns: int, settings: MemorySettings
) -> Familiarity:
    """Return how familiar an exchange's ground is.

    ``world_state_present`` says that the agent knows a fact besides those counted: one that it learnt in another
    session, or on another topic of this one.
    """
    gists = sum(gist.topic == pending.topic for gist in session.fresh_gists(now_ns, settings))
    keys = on_topic(mind.facts, pending.session, pending.topic)
    return Familiarity(
        context_warmth=warmth(gists, len(keys), len(session.turns)),
        working_memory_turns=len(session.turns),
        gist_count=gists,
        fact_count=len(keys),
        fact_keys=keys,
        world_state_present=len(Current(mind.facts)) > len(keys),
        conversation_topic=pending.topic,
        topic_confidence=pending.topic_confidence,
        is_new_topic=pending.is_new_topic,
        session_exchange_count=pending.exchanges_before,
    )
