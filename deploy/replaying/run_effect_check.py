"""Checking recorded effects, such as a model's answer: each must answer a recorded request."""

from collections.abc import AsyncIterator, Iterable, Mapping

from events.log import Stored
from events.replay.run_replay import END, Point
from events.replay.sources import Source
from events.replay.verifying.effect_check import EffectCheck, EffectReport, RequestIdReader
from schemas.catalogue import CATALOGUE, requests_to
from schemas.event import Event, topic_of
from schemas.subjects import topic_filter

REQUESTS_TO: Mapping[str, frozenset[type[Event]]] = {
    effector: frozenset(requests_to(effector)) for effector in ("llm", "delegate", "webhook")
}
"""Effector -> the types of events that request an effect from it."""


async def check_effects(source: Source, upto: Point = END, exchanges: frozenset[str] = frozenset()) -> EffectReport:
    """Compare every recorded effect up to a point with the requests before it; raises LogError as the source does.

    The report has the findings on ``exchanges``; if there are none, on all.
    """
    last = min((await source.info()).last_seq, upto.seq)
    own = [topic for topic, entry in CATALOGUE.items() if entry.owner in REQUESTS_TO]
    reader = RequestIdReader(REQUESTS_TO.keys())
    async for stored in _read(source, own, last, upto.time_ns):
        reader.feed(stored)
    request_ids = reader.finish()
    if not len(request_ids):
        return EffectReport({}, ())
    topics = {effector: frozenset(map(topic_of, events)) for effector, events in REQUESTS_TO.items()}
    known = frozenset(own).union(*topics.values())

    async def checked(read: Iterable[str]) -> EffectCheck:
        check = EffectCheck(topics, request_ids, exchanges)
        async for stored in _read(source, read, last, upto.time_ns):
            check.feed(stored)
        return check

    check = await checked(known)
    if check.lacks_requests:  # a newer release may have requests of its own
        unknown = [topic for topic in await source.counts() if topic and topic not in CATALOGUE]
        check = await checked(known.union(unknown)) if unknown else check
    return check.finish()


async def _read(source: Source, topics: Iterable[str], last: int, until_ns: int) -> AsyncIterator[Stored]:
    async for batch in source.as_stored([topic_filter(topic) for topic in sorted(topics)], 0, last):
        for stored in batch:
            if stored.time_ns > until_ns:
                return
            yield stored
