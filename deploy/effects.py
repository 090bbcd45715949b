"""Which requests the effectors serve, and whether recorded effects answer recorded requests."""

from collections.abc import Mapping

from actors.llm.answering import REQUESTS
from deploy.replaying import END, Point
from deploy.sources import Source
from events.effects import EffectReport, Effects
from schemas.catalogue import CATALOGUE
from schemas.event import Event, topic_of
from schemas.subjects import topic_filter
from schemas.vocabulary.act import ActDelegationRequested
from schemas.vocabulary.alerts import ALERTS
from schemas.vocabulary.webhook import WebhookQueued

SERVED: Mapping[str, frozenset[type[Event]]] = {
    "llm": frozenset(REQUESTS),
    "delegate": frozenset((ActDelegationRequested,)),
    "webhook": frozenset((*ALERTS.values(), WebhookQueued)),
}
"""Effector -> the events that ask it for an effect."""


async def check_effects(source: Source, upto: Point = END, of: frozenset[str] = frozenset()) -> EffectReport:
    """Hold every recorded effect up to a point against the requests before it; raises LogError as the source does.

    ``of`` are the exchanges of which findings are kept; none: of all.
    """
    topics = {effector: frozenset(map(topic_of, events)) for effector, events in SERVED.items()}
    effects = Effects(topics, of)
    own = (topic for topic, entry in CATALOGUE.items() if entry.owner in SERVED)
    filters = [topic_filter(topic) for topic in sorted(frozenset(own).union(*topics.values()))]
    async for batch in source.as_stored(filters, 0, min((await source.info()).last_seq, upto.seq)):
        for stored in batch:
            if stored.time_ns > upto.time_ns:
                return effects.finish()
            effects.feed(stored)
    return effects.finish()
