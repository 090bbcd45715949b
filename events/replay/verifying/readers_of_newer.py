"""Which releases could read messages of a version that this one does not know, as their decisions show."""

from collections.abc import Collection
from urllib.parse import unquote

from events.replay.sources import Source
from events.replay.verifying.unread_causes import Kind, release_in
from schemas.catalogue import CATALOGUE
from schemas.envelope import VERSION
from schemas.event import Failed
from schemas.subjects import EVERYTHING, topic_filter


async def readers_of(source: Source, kinds: Collection[Kind]) -> frozenset[Kind]:
    """Return the releases that were seen to read such messages: an event that is no failure names one as its cause.

    Raises:
        LogError: the source cannot be read.
    """
    last = (await source.info()).last_seq
    wanted = {(kind.topic, kind.version) for kind in kinds}
    read: dict[str, tuple[str, str]] = {}
    async for batch in source.as_stored([topic_filter(topic) for topic in {topic for topic, _ in wanted}], 0, last):
        for stored in batch:
            kind = stored.headers.get("ce-type", ""), stored.headers.get(VERSION, "")
            if kind in wanted:
                read[stored.headers.get("ce-id", "")] = kind
    found: set[Kind] = set()
    async for batch in source.as_stored([EVERYTHING], 0, last):
        for stored in batch:
            cause = read.get(stored.headers.get("ce-cause", ""))
            entry = CATALOGUE.get(stored.headers.get("ce-type", ""))
            if cause is not None and not (entry is not None and issubclass(entry.event, Failed)):
                found.add(Kind(*cause, release_in(unquote(stored.headers.get("ce-build", "")))))
    return frozenset(found)
