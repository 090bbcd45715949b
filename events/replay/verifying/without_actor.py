"""Events of actors that this release does not have: nobody here can make their decisions again."""

from collections import Counter
from collections.abc import Collection, Mapping

from events.ledger.rows import topic_of_subject
from events.replay.run_replay import END, Point
from events.replay.sources import Source
from schemas.catalogue import CATALOGUE, owned_by
from schemas.event import Configured
from schemas.subjects import topic_filter


def has_decider(owner: str) -> bool:
    """Whether an owner's events are decided by an actor, of this release or another: only an actor has settings."""
    return any(issubclass(entry.event, Configured) for entry in owned_by(owner))


async def events_without_actor(source: Source, actors: Collection[str], upto: Point = END) -> Mapping[str, int]:
    """Count the events up to a point, by public subject, that only an actor which is missing here can have decided.

    They are on subjects that the catalogue does not hold (an actor that was removed with its vocabulary, or one of
    a newer release), or they belong to an actor that is not among ``actors``.

    Args:
        source: The log.
        actors: The names of all actors of this release.
        upto: How far to read.

    Raises:
        LogError: the source cannot be read.
    """
    lacking = {entry.owner for entry in CATALOGUE.values() if has_decider(entry.owner)}.difference(actors)
    topics = [
        topic
        for topic in await source.counts()
        if topic and (topic not in CATALOGUE or CATALOGUE[topic].owner in lacking)
    ]
    found = Counter[str]()
    if not topics:
        return found
    last = min((await source.info()).last_seq, upto.seq)
    async for batch in source.as_stored([topic_filter(topic) for topic in topics], 0, last):
        found.update(topic_of_subject(each.subject) for each in batch if each.time_ns <= upto.time_ns)
    return dict(sorted(found.items()))
