"""The bucket of sessions' keys, lost or cut: said at the start and by the doctor, and told from forgetting."""

import asyncio
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pytest
import structlog

from deploy.health.findings import Verdict
from deploy.health.session_keys_check import KeyCount, count_keys, examine_keys, log_lost_keys
from deploy.operating.operator_session import FACTS_SESSION
from deploy.operating.session_keys import collect_keys
from events.errors import UnknownOutcome
from events.jetstream import JetStreamLog
from events.jetstream.session_keys import KeyValueKeys
from events.ledger import LedgerWriter
from events.log import Append
from events.sealing.keys import key_name
from schemas.permissions import keys_bucket
from schemas.subjects import EVERYTHING
from schemas.vocabulary.operator import ForgetOrdered
from tests.broker import Broker
from tests.events.sealing.records import recorded, said
from tests.faults.cuts import cut_tail, drop_index

BUCKET = "KV_NEURAXIS_keys"


def _lose(store: Path) -> None:
    shutil.rmtree(next(store.glob(f"jetstream/*/streams/{BUCKET}")))


def _cut(store: Path) -> None:
    cut_tail(store, 20, BUCKET)


def _cut_without_index(store: Path) -> None:
    cut_tail(store, 20, BUCKET)
    drop_index(store, BUCKET)


async def _speak(log: JetStreamLog) -> None:
    for number in range(3):
        record = said("hello", id=f"e{number}", session=f"s{number}")
        await log.append([Append([msgspec.structs.replace(record, subject=f"log.00.0{number}.input.received")])])


async def _found(broker: Broker) -> tuple[Verdict, int]:
    """Return what the doctor finds, and how many lines the start of a set says of it."""
    log = await JetStreamLog.connect(broker.url, sealed=True)
    try:
        with structlog.testing.capture_logs() as lines:
            await log_lost_keys(log.connection, log.stream)
        found = await examine_keys(log.connection, log.stream)
    finally:
        await log.close()
    return found.verdict, sum(line["event"] == "session_keys_lost" for line in lines)


@pytest.mark.parametrize("harm", [_lose, _cut, _cut_without_index])
def test_keys_that_are_gone_are_told_of(harm: Callable[[Path], None], broker: Broker) -> None:
    async def spoken() -> None:
        log = await JetStreamLog.connect(broker.url, sealed=True)
        await _speak(log)
        await log.close()

    asyncio.run(spoken())
    assert asyncio.run(_found(broker)) == (Verdict.OK, 0)
    broker.stop()
    harm(broker.store)
    broker.start()
    assert asyncio.run(_found(broker)) == (Verdict.FAIL, 1)


def test_a_session_that_was_forgotten_has_lost_no_key(broker: Broker) -> None:
    async def spoken() -> None:
        log = await JetStreamLog.connect(broker.url, sealed=True)
        await _speak(log)
        assert await KeyValueKeys(log.connection, keys_bucket(log.stream)).destroy(key_name("ann", "s2"))
        await log.close()

    asyncio.run(spoken())
    assert asyncio.run(_found(broker)) == (Verdict.OK, 0)


@pytest.mark.parametrize("forgotten", ["session", "facts", ""])
def test_a_key_of_words_before_the_latest_is_looked_for_unless_its_session_was_forgotten(
    broker: Broker, tmp_path: Path, forgotten: str
) -> None:
    """The session spoke again since, under a new key, and another one in the same partition.

    An order to forget facts has a session, too, but destroys no key.
    """
    session = FACTS_SESSION if forgotten == "facts" else "s"
    is_forgotten = forgotten == "session"

    async def spoken(texts: Sequence[str]) -> JetStreamLog:
        log = await JetStreamLog.connect(broker.url, sealed=True)
        for text in texts:
            speaks = session if text == "s" or "again" in text else text
            await log.append([Append([said(text, id=text, session=speaks)])])
        return log

    async def missing(log: JetStreamLog) -> tuple[int, int]:
        ledger = tmp_path / f"{time.monotonic_ns()}.db"
        async with await LedgerWriter.open(ledger, log.stream, log.partitions) as writer:
            async for batch in log.as_stored().history([EVERYTHING], 0, (await log.info()).last_seq):
                await writer.append(batch)
        return (await count_keys(log.connection, log.stream)).missing, (await collect_keys(log, ledger)).missing

    async def gone(log: JetStreamLog) -> None:
        keys = KeyValueKeys(log.connection, keys_bucket(log.stream))
        entry = await keys.confirm(key_name("ann", session))
        assert entry is not None
        await log.connection.api(f"STREAM.MSG.DELETE.{BUCKET}", {"seq": entry.revision})
        await log.close()

    async def main() -> None:
        order = ForgetOrdered(what="session", by="ann", why="asked to")
        log = await spoken(["s", "other"])
        if forgotten:
            await log.append([Append([recorded(order, session=session, id="order")])])
        await gone(log)
        log = await spoken(["again", "latest"])
        lost = 0 if is_forgotten else 1
        assert ("at sequence 1" in (await examine_keys(log.connection, log.stream)).detail) == bool(lost)
        assert await missing(log) == (lost, lost)
        await gone(log)
        log = await spoken(["once again", "still latest"])
        assert (await missing(log))[1] == 1, "what it said after it was forgotten is lost, too"
        await log.append([Append([recorded(order, session=session, id="settled")])])
        lost = 1 if forgotten == "facts" else 0
        assert await missing(log) == (lost, lost)
        await log.close()

    asyncio.run(main())


def test_a_session_whose_forgetting_stopped_half_way_has_lost_no_key_once_it_is_repeated(broker: Broker) -> None:
    async def spoken() -> None:
        log = await JetStreamLog.connect(broker.url, sealed=True)
        await _speak(log)
        keys = KeyValueKeys(log.connection, keys_bucket(log.stream))
        entry = await keys.confirm(key_name("ann", "s2"))
        assert entry is not None
        await log.connection.api(f"STREAM.MSG.DELETE.{BUCKET}", {"seq": entry.revision})  # and no marker after it
        assert (await examine_keys(log.connection, log.stream)).verdict is Verdict.FAIL
        assert not await keys.destroy(key_name("ann", "s2"))
        assert (await examine_keys(log.connection, log.stream)).verdict is Verdict.OK
        assert not await keys.destroy(key_name("ann", "s2"))
        await log.close()

    asyncio.run(spoken())


def test_a_log_with_more_partitions_than_the_broker_answers_about_at_once_is_looked_through(broker: Broker) -> None:
    """No answer came then, for which no set of that size could start."""

    async def spoken() -> KeyCount:
        log = await JetStreamLog.connect(broker.url, sealed=True)
        for agents in (range(20), range(20, 40)):
            pairs = [(agent, session) for agent in agents for session in range(30)]
            records = [
                msgspec.structs.replace(
                    said("hello", id=f"e{agent}-{session}", session=f"s{agent}-{session}"),
                    subject=f"log.{agent:02}.{session:02}.input.received",
                )
                for agent, session in pairs
            ]
            await log.append([Append(records)])
        try:
            return await count_keys(log.connection, log.stream)
        finally:
            await log.close()

    assert asyncio.run(spoken()) == KeyCount(1_200, 0)
    assert asyncio.run(_found(broker)) == (Verdict.OK, 0)


def test_what_the_broker_refuses_to_look_up_is_not_waited_for(broker: Broker) -> None:
    async def asked() -> None:
        log = await JetStreamLog.connect(broker.url)
        try:
            with pytest.raises(UnknownOutcome, match="refuses a request: 408"):
                async for _ in log.connection.gather(f"$JS.API.DIRECT.GET.{log.stream}", b"[]", 30.0):
                    pass
        finally:
            await log.close()

    async def main() -> None:
        await asyncio.wait_for(asked(), 10)

    asyncio.run(main())


def test_a_log_that_seals_nothing_needs_no_keys(broker: Broker) -> None:
    async def spoken() -> None:
        log = await JetStreamLog.connect(broker.url)
        await _speak(log)
        with structlog.testing.capture_logs() as lines:
            await log_lost_keys(log.connection, log.stream)
        assert lines == []
        assert (await examine_keys(log.connection, log.stream)).verdict is Verdict.OK
        await log.close()

    asyncio.run(spoken())


def test_a_bucket_that_is_deleted_while_the_set_runs_is_no_missing_right(broker: Broker) -> None:
    async def spoken() -> None:
        log = await JetStreamLog.connect(broker.url, sealed=True)
        await _speak(log)
        await log.connection.api(f"STREAM.DELETE.{BUCKET}")
        found = await examine_keys(log.connection, log.stream)
        await log.close()
        assert found.verdict is Verdict.FAIL
        assert "may not" not in found.detail
        assert "put back a copy of the broker's store" in found.remedy

    asyncio.run(spoken())
