"""A log whose stream has lost its beginning to the ledger gets more partitions, and requests still see all of it."""

import asyncio
import time
from pathlib import Path

import pytest

from actors.gateway.operator_orders import Order
from deploy.copying import repartitioning, trimming
from deploy.copying.repartitioning import Repartitioned, cancel, repartition
from deploy.operating.order_client import give
from deploy.processes.gateway.operations import BrokerOperations
from events.errors import Misconfigured
from events.jetstream import Access, JetStreamLog
from events.ledger import compare, verify
from schemas.permissions import SNAPSHOTS_BUCKET
from schemas.subjects import Partitions
from schemas.vocabulary.allowances import AllowanceRecorded
from schemas.vocabulary.responder import ResponseEmitted
from tests.actors.runtime.living import PARTITIONS, at_rest, converse, living
from tests.broker import Broker
from tests.events.log.broker.test_repartition import asked as conversed
from tests.events.log.broker.test_trimming import CONFIG, EVERY, on_log, projected, resting, trimmed, until_gone
from tests.events.setting import collect
from tests.judging import broken_promises, exchanges, replayed

SESSIONS = 4
AFTER = (2 * PARTITIONS.agents, 2 * PARTITIONS.sessions)


async def divided(broker: Broker, ledger: Path | None, counts: tuple[int, int] = AFTER) -> Repartitioned:
    return await repartition(Access(servers=broker.url), CONFIG, *counts, lambda _what, _seq: None, ledger)


async def with_trimmed_log(log: JetStreamLog, broker: Broker, ledger: Path) -> int:
    """Have a conversation of which the stream keeps the end; return the last sequence that it lacks."""
    async with living(broker, "before") as worker:
        await converse(log, SESSIONS, 1)
        order = AllowanceRecorded(allowance="old", text="ignore all of it", by="ann", why="our own words")
        await give(log, [Order(event=order, agent="agent-1")], 20.0)
        await at_rest(log)
        await resting(log, worker)
        await worker.stopped()
    old = time.monotonic()
    async with living(broker, "between") as worker:
        await asyncio.sleep(2.5)  # so long ago the broker removes events, in whole seconds
        await conversed(log, [(1, 7, "Hello there")])
        await resting(log, worker)
        await worker.stopped()
    await projected(broker, ledger)
    done = await trimmed(broker, ledger, time.monotonic() - old - 1.0)
    return done.first_seq - 1


@pytest.fixture(autouse=True)
def any_age(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trimming, "_MIN_AGE_S", 0.0)


def test_partitions_are_divided_by_what_the_ledger_and_the_stream_hold(broker: Broker, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.db"

    async def body(log: JetStreamLog) -> None:
        through = await with_trimmed_log(log, broker, ledger)
        assert through > 0
        kept = await collect(log)
        for wrong, said in ((None, "run this where the ledger is"), (tmp_path / "none.db", "is not there")):
            with pytest.raises(Misconfigured, match=said):
                await divided(broker, wrong)
        assert await collect(log) == kept, "a refusal has changed the log"

        done = await divided(broker, ledger)
        assert (done.after.agents, done.after.sessions) == AFTER
        assert done.states >= SESSIONS
        after = await JetStreamLog.connect(broker.url, create=False)
        assert after.trimmed_through == through
        async with living(broker, "after", partitions=Partitions(*AFTER)) as worker:
            texts = [(number, 9, "Do you remember what we discussed?") for number in range(SESSIONS)]
            ends = await conversed(after, texts)
            await resting(after, worker)
            used, count = worker.worker.counters.snapshots_used, len(worker.worker.shards)
            await worker.stopped()
        assert used == count, "a partition was folded without its snapshot"
        await projected(broker, ledger)
        assert verify(ledger).ok
        assert (await compare(ledger, after.as_stored())).ok
        # The whole log, decided anew: nothing in it depends on what the stream lacks.
        operations = BrokerOperations(Access(servers=broker.url), "NEURAXIS", wait_s=20.0, ledger=ledger)
        async with operations._log("agent") as whole:
            found = await collect(whole)
        assert [each.seq for each in found] == list(range(1, found[-1].seq + 1))
        answered = exchanges(found, ResponseEmitted)
        assert {end.exchange for end in ends} <= set(answered)
        replay = replayed(EVERY, found, after.partitions)
        assert broken_promises(EVERY, found, answered, after.partitions, replay) == []
        # Snapshots of the new partitions can be written anew, too.
        await until_gone(after)
        assert (await trimmed(broker, ledger, None)).snapshots >= count
        await after.close()

    on_log(broker, body)


def test_what_was_interrupted_leaves_snapshots_to_their_owners(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = tmp_path / "ledger.db"

    async def killed(*_: object) -> int:
        raise SystemExit

    async def body(log: JetStreamLog) -> None:
        await with_trimmed_log(log, broker, ledger)
        with monkeypatch.context() as during:
            during.setattr(repartitioning, "write_snapshots", killed)
            during.setattr(repartitioning, "_open", killed)  # as SIGKILL: nothing is put back
            with pytest.raises(SystemExit):
                await divided(broker, ledger)
        with pytest.raises(Misconfigured, match="is being repartitioned"):
            await JetStreamLog.connect(broker.url, create=False)
        assert await cancel(Access(servers=broker.url), CONFIG)
        await _own_snapshot_is_taken(log)
        done = await divided(broker, ledger)
        assert (done.before, done.after.sessions) == (PARTITIONS, AFTER[1])
        await _own_snapshot_is_taken(log)

    on_log(broker, body)


async def _own_snapshot_is_taken(log: JetStreamLog) -> None:
    answer = await log.connection.request(f"$KV.{SNAPSHOTS_BUCKET}.probe", b"x")
    assert b'"seq"' in answer.data, answer.data


def test_requests_over_http_see_allowances_that_were_removed_from_the_stream(broker: Broker, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.db"

    async def body(log: JetStreamLog) -> None:
        await with_trimmed_log(log, broker, ledger)
        access = Access(servers=broker.url)
        without = BrokerOperations(access, "NEURAXIS", wait_s=20.0, ledger=tmp_path / "elsewhere.db")
        assert (await without.allowances("agent-1")).allowances == ()
        operations = BrokerOperations(access, "NEURAXIS", wait_s=20.0, ledger=ledger)
        assert [each.allowance for each in (await operations.allowances("agent-1")).allowances] == ["old"]
        await operations.withdraw("agent-1", "old", "ben", "no longer")
        assert (await operations.allowances("agent-1")).allowances == ()

    on_log(broker, body)
