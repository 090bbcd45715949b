"""Which events of a session still hold words that anybody may read, whichever release wrote them."""

import asyncio
from typing import Any

import msgspec

from deploy.operating.forgetting import Survey, survey
from events.jetstream import JetStreamLog
from events.log import Append, Record
from schemas.catalogue import CATALOGUE
from schemas.versions import UPCASTERS
from schemas.vocabulary.memory import MemoryRemembered
from schemas.vocabulary.reflex import ReflexPassed
from tests.broker import Broker
from tests.deploy.operating.test_session_copies import stored
from tests.events.releases import LaterRelease, later

__all__ = ["later"]

SAID = MemoryRemembered(conversation_topic="t", gist="The vault opens at noon.", facts=(), concepts=(), salience=0.5)


def rewritten(record: Record, **fields: Any) -> Record:
    """Return a record whose body has some fields more or, where None, fewer."""
    body = {name: value for name, value in (msgspec.json.decode(record.data) | fields).items() if value is not None}
    return Record(record.subject, record.headers, msgspec.json.encode(body))


def surveyed(broker: Broker, *records: Record) -> Survey:
    async def run() -> Survey:
        log = await JetStreamLog.connect(broker.url, sealed=False)
        try:
            await log.append([Append(list(records))])
            return await survey(log, "ann", "travel")
        finally:
            await log.close()

    return asyncio.run(run())


def test_words_in_a_field_that_has_been_renamed_since_are_still_readable(broker: Broker, later: LaterRelease) -> None:
    entry = CATALOGUE["forged_id.memory.remembered"]
    later.patch.setitem(CATALOGUE, entry.topic, msgspec.structs.replace(entry, version=2))
    later.patch.setitem(
        UPCASTERS,  # type: ignore[arg-type]
        (entry.topic, 1),
        lambda body: {("gist" if name == "summary" else name): value for name, value in body.items()},
    )
    old = stored(SAID, "travel")
    headers = {name: value for name, value in old.headers.items() if name != "ce-dataversion"}
    found = surveyed(broker, rewritten(Record(old.subject, headers, old.data), gist=None, summary=SAID.gist))
    assert (found.events, found.readable) == (1, 1)


def test_an_event_without_words_holds_none(broker: Broker) -> None:
    plain, more = stored(ReflexPassed(), "travel"), stored(ReflexPassed(), "elsewhere")
    assert surveyed(broker, plain, more).readable == 0


def test_a_text_in_a_field_that_this_release_does_not_know_may_be_words_and_a_number_is_none(broker: Broker) -> None:
    found = surveyed(
        broker,
        rewritten(stored(ReflexPassed(), "travel"), score=0.5),
        rewritten(stored(SAID, "travel"), gist="", excerpt="The vault opens at noon."),
    )
    assert (found.events, found.readable) == (2, 1)


def raised(record: Record) -> Record:
    """Return a record in a version that this release does not know."""
    return with_header(record, "ce-dataversion", "2")


def with_header(record: Record, name: str, value: str) -> Record:
    """Return a record with another header."""
    return Record(record.subject, {**record.headers, name: value}, record.data)


def test_events_of_a_later_release_end_exchanges_and_are_named_as_unread(broker: Broker) -> None:
    received, ended = (
        with_header(stored(CATALOGUE[f"forged_id.{name}"].sample, "travel"), "ce-exchange", "e-1")
        for name in ("input.received", "response.emitted")
    )
    found = surveyed(broker, received, raised(ended), raised(stored(SAID, "travel")), raised(stored(SAID, "other")))
    assert (found.exchanges, found.open, found.events) == (1, 0, 3), "an end that it cannot read is no lack of one"
    assert found.unread.startswith("3 events that this release cannot read are left out (the first at sequence 2: ")


def test_where_all_can_be_read_nothing_is_named(broker: Broker) -> None:
    assert surveyed(broker, stored(SAID, "travel")).unread == ""
