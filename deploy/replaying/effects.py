"""Which requests the effectors serve, and whether recorded effects answer recorded requests."""

from collections.abc import AsyncIterator, Iterable, Mapping

from events.log import Stored
from events.replay.run_replay import END, Point
from events.replay.sources import Source
from events.replay.verifying.effects import EffectCheck, EffectReport, RequestIdReader
from schemas.catalogue import CATALOGUE, requests_to
from schemas.event import Event, topic_of
from schemas.subjects import topic_filter

SERVED: Mapping[str, frozenset[type[Event]]] = {
    effector: frozenset(requests_to(effector)) for effector in ("llm", "delegate", "webhook")
}
"""Effector -> the events that ask it for an effect."""


async def check_effects(source: Source, upto: Point = END, of: frozenset[str] = frozenset()) -> EffectReport:
    """Hold every recorded effect up to a point against the requests before it; raises LogError as the source does.

    ``of`` are the exchanges of which findings are kept; none: of all.
    """
    last = min((await source.info()).last_seq, upto.seq)
    own = [topic for topic, entry in CATALOGUE.items() if entry.owner in SERVED]
    reader = RequestIdReader(SERVED.keys())
    async for stored in _read(source, own, last, upto.time_ns):
        reader.feed(stored)
    causes = reader.finish()
    if not len(causes):
        return EffectReport({}, ())
    topics = {effector: frozenset(map(topic_of, events)) for effector, events in SERVED.items()}
    effects = EffectCheck(topics, causes, of)
    async for stored in _read(source, frozenset(own).union(*topics.values()), last, upto.time_ns):
        effects.feed(stored)
    return effects.finish()


async def _read(source: Source, topics: Iterable[str], last: int, until_ns: int) -> AsyncIterator[Stored]:
    async for batch in source.as_stored([topic_filter(topic) for topic in sorted(topics)], 0, last):
        for stored in batch:
            if stored.time_ns > until_ns:
                return
            yield stored
