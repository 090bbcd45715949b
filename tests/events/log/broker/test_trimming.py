"""The beginning of a stream is removed, and its ledger keeps it: all goes on, and nothing counts as lost."""

import asyncio
import time
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import pytest

from actors.gateway import Client, new_input
from actors.gateway.external_events import InvalidField
from actors.ledger.projector import LedgerProjector
from actors.registry import ACTORS
from deploy.config.loading import RUNNING_SECTIONS, load
from deploy.config.settings import LogSettings
from deploy.copying import trimming
from deploy.copying.repartitioning import repartition
from deploy.copying.trimming import Trimmed, trim
from deploy.health.doctor import judge_stream
from deploy.health.findings import Verdict
from deploy.operating.forgetting import count_memories, survey
from deploy.processes.gateway.records import BrokerRecords
from deploy.replaying.log_questions import Answered, Asked, ShowState, Unanswered, answer
from events.errors import Misconfigured, Unavailable
from events.jetstream import Access, JetStreamLog, KeyValueMembership, KeyValueSnapshots
from events.jetstream.stream import REPARTITIONING, TRIMMING, trimmed_through
from events.ledger import LedgerArchive, compare, verify
from events.replay.replay import Replay
from events.replay.run_replay import run_replay
from events.replay.sources import LedgerSource
from events.snapshot import partition_key
from neuraxis import BadInput
from neuraxis.nats import Login, read
from schemas.persistent import state_hash
from schemas.subjects import EVERYTHING
from schemas.vocabulary.ledger import LossRecorded
from schemas.vocabulary.operator import ForgetOrdered
from schemas.vocabulary.responder import ResponseEmitted
from tests.actors.runtime.living import PARTITIONS, Living, at_rest, converse, living, on_broker
from tests.actors.runtime.waiting import DEADLINE_S, until
from tests.broker import Broker
from tests.events.log.broker.test_repartition import store_what_nobody_reads
from tests.events.setting import collect
from tests.judging import exchanges, replayed

CONFIG = load(RUNNING_SECTIONS, environment={})
EVERY = tuple(ACTORS.values())


async def projected(broker: Broker, ledger: Path) -> None:
    """Have a projector write the ledger up to the stream's end, with an anchor behind all, and stop."""
    log = await JetStreamLog.connect(broker.url, create=False)
    try:
        end, stop = (await log.info()).last_seq, asyncio.Event()
        projector = LedgerProjector(log, ledger)
        running = asyncio.create_task(projector.run(stop))
        await until(lambda: projector.progress.position >= end, "the ledger to catch up")
        stop.set()
        await running
    finally:
        await log.close()


async def trimmed(broker: Broker, ledger: Path, older_than_s: float | None) -> Trimmed:
    return await trim(Access(servers=broker.url), CONFIG, ledger, older_than_s, lambda _: None)


async def asked(log: JetStreamLog, text: str) -> None:
    async with Client.open(log) as edge:
        addressed = new_input(
            text, agent="agent-1", session="session-1", partitions=log.partitions, now_ns=edge.now_ns()
        )
        await edge.submit(addressed)
        await edge.await_end(addressed.exchange, DEADLINE_S)


def test_what_was_removed_is_in_the_ledger_and_every_partition_goes_on_from_its_snapshot(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = tmp_path / "ledger.db"

    async def body(log: JetStreamLog) -> None:
        async with living(broker, "before") as worker:
            await converse(log, 4, 2)
            await at_rest(log)
            await worker.stopped()
        await projected(broker, ledger)
        before = (await log.info()).last_seq
        with pytest.raises(Misconfigured, match="an hour at least"):
            await trimmed(broker, ledger, 60.0)
        monkeypatch.setattr(trimming, "_MIN_AGE_S", 0.0)
        with pytest.raises(Misconfigured, match="is not there"):
            await trimmed(broker, tmp_path / "none.db", 5.0)
        # Something recent must be left, whatever the age.
        old = time.monotonic()
        await until(lambda: time.monotonic() - old > 2.0, "what there is to be old")
        with pytest.raises(Misconfigured, match="must lie before it"):
            await trimmed(broker, ledger, 1.0)
        async with living(broker, "between") as worker:
            await asked(log, "Hello there")
            with pytest.raises(Misconfigured, match="1 worker runs"):
                await trimmed(broker, ledger, 1.0)
            await at_rest(log)
            await worker.stopped()
        with pytest.raises(Misconfigured, match="must lie before it"):
            await trimmed(broker, ledger, 1.0)
        await projected(broker, ledger)
        age = time.monotonic() - old
        done = await trimmed(broker, ledger, age)
        assert done.removed >= before - 1
        assert done.first_seq > 1
        info = await log.connection.api("STREAM.INFO.NEURAXIS")
        config = info["config"]
        assert judge_stream("NEURAXIS", info["state"], 1, trimmed_through(info)).verdict is Verdict.OK
        assert (config["max_age"], config["deny_purge"], TRIMMING in config["metadata"]) == (0, True, False)

        after = await JetStreamLog.connect(broker.url, create=False)
        assert after.trimmed_through == done.first_seq - 1
        async with living(broker, "after") as worker:
            await asked(after, "Do you remember what we discussed last time?")
            await asked(after, "thanks!")
            await resting(after, worker)
            states = {key: shard.view for key, shard in worker.worker.shards.items()}
            counters = worker.worker.counters
            await worker.stopped()
        assert counters.snapshots_used == len(states)
        await projected(broker, ledger)
        source = LedgerSource(ledger)
        folded = Replay(EVERY, PARTITIONS)
        await run_replay(source, folded, progress=lambda _: None)
        differing = [
            key for key, view in folded.views.items() if state_hash(view.state) != state_hash(states[key].state)
        ]
        assert differing == []
        _, report = replayed(EVERY, [one async for some in source.history([">"], 0, 2**62) for one in some], PARTITIONS)
        source.close()
        assert report.clean
        found = await collect(after)
        assert not exchanges(found, LossRecorded)
        compared = await compare(ledger, after.as_stored())
        assert compared.ok, compared
        assert compared.archived == done.first_seq - 1
        assert verify(ledger).ok
        # With the ledger at hand, the log is read whole.
        after.archive = LedgerArchive(ledger)
        assert (await after.info()).first_seq == 1
        assert [each.seq for each in await collect(after)] == list(range(1, (await after.info()).last_seq + 1))
        await nobody_passes_over_what_was_removed(after, ledger)
        order = ForgetOrdered(what="session", by="ann", why="asked to")
        assert await count_memories(after, "agent-0", order, "session-0") > 0
        assert (await survey(after, "agent-0", "session-0")).exchanges == 2
        after.archive = None
        # Nor from a snapshot that ends before what is left, which a server that lags behind the others may have.
        snapshots = KeyValueSnapshots(after.connection)
        for key in (partition_key("breaker", "00"), partition_key("clock", "all")):
            assert await snapshots.load(key, after.trimmed_through) is not None
        older = KeyValueSnapshots(after.connection)
        await older.save("probe.00", b"state", after.trimmed_through - 1)
        with pytest.raises(Unavailable, match=f"the log begins behind {after.trimmed_through}"):
            await older.load("probe.00", after.trimmed_through)
        # Without a snapshot nothing is folded from the middle; the snapshots are written anew from the ledger.
        await snapshots.drop(partition_key("breaker", "00"))
        async with living(broker, "without") as worker:
            assert "neuraxis log trim --snapshots" in repr(await worker.ended())
        await asyncio.sleep(0)
        await until_gone(after)
        # Also while something waits for a decision: no worker can make it before its snapshot is there.
        async with Client.open(after) as edge:
            waiting = new_input(
                "Hello?", agent="agent-2", session="session-2", partitions=after.partitions, now_ns=edge.now_ns()
            )
            await edge.submit(waiting)
        await projected(broker, ledger)
        await trimmed(broker, ledger, None)
        async with living(broker, "again") as worker:
            await asked(after, "Hello there")
            await resting(after, worker)
            await worker.stopped()
        assert waiting.exchange in exchanges(await collect(after), ResponseEmitted)
        await after.close()

    on_broker(broker, body)


def test_inputs_in_partitions_that_the_log_does_not_have_keep_no_snapshots_from_being_written(
    broker: Broker, tmp_path: Path
) -> None:
    async def body(log: JetStreamLog) -> None:
        async with living(broker, "before") as worker:
            await converse(log, 1, 1)
            await at_rest(log)
            await worker.stopped()
        await store_what_nobody_reads(log)
        await projected(broker, tmp_path / "ledger.db")
        assert (await trimmed(broker, tmp_path / "ledger.db", None)).snapshots > 0

    on_broker(broker, body)


def test_states_that_only_a_newer_release_can_fold_are_neither_kept_nor_divided(broker: Broker, tmp_path: Path) -> None:
    newer = [replace(actor, behaviour=2) if actor.name == "router" else actor for actor in EVERY]

    async def body(log: JetStreamLog) -> None:
        async with living(broker, "newer", actors=newer) as worker:
            await converse(log, 1, 1)
            await at_rest(log)
            await worker.stopped()
        await projected(broker, tmp_path / "ledger.db")
        before = (await log.connection.api("STREAM.INFO.NEURAXIS"))["config"]
        with pytest.raises(Misconfigured, match=r"router partition .* behaviour 2.*run the newer release"):
            await trimmed(broker, tmp_path / "ledger.db", None)
        counts = None, 2 * PARTITIONS.sessions
        with pytest.raises(Misconfigured, match=r"router partition .* behaviour 2.*run the newer release"):
            await repartition(Access(servers=broker.url), CONFIG, *counts, lambda what, reached: None)
        after = (await log.connection.api("STREAM.INFO.NEURAXIS"))["config"]
        assert after["subjects"] == before["subjects"], "its owners may write to it again"
        assert not {TRIMMING, REPARTITIONING} & set(after["metadata"])

    on_broker(broker, body)


async def nobody_passes_over_what_was_removed(log: JetStreamLog, ledger: Path) -> None:
    """Who reads the log by its sequences gets what was removed from the ledger, or is told that it is not here."""
    through, end = log.trimmed_through, (await log.info()).last_seq

    async def followed(archive: LedgerArchive | None, after: int) -> list[int]:
        whole, found = log.with_archive(archive), list[int]()
        membership = KeyValueMembership(log.connection)
        records = BrokerRecords(log.connection, log.with_archive(None), asyncio.Event(), membership, whole=whole)
        async with aclosing(await records.follow(EVERYTHING, after, words=False)) as events:
            async for each in events:
                found += [] if each is None else [each.seq]
                if found[-1:] == [end]:
                    break
        return found

    assert await followed(LedgerArchive(ledger), 0) == list(range(1, end + 1))
    assert await followed(LedgerArchive(ledger), through - 1) == list(range(through, end + 1))
    assert await followed(None, through) == list(range(through + 1, end + 1))
    with pytest.raises(InvalidField, match="were removed from the stream"):
        await followed(None, through - 1)

    question = ShowState(actor="clock", key="all")
    settings = LogSettings(agents=log.partitions.agents, sessions=log.partitions.sessions)
    for file, kind in ((str(ledger), Answered), ("", Unanswered)):
        asked = Asked(access=log.connection.access, log=settings, question=question, ledger=file)
        assert isinstance(found := await answer(asked), kind), found

    async def first_read(after: int) -> int:
        async with aclosing(read(">", Login(url=log.connection.access.servers), after=after)) as events:
            return (await anext(events)).seq

    assert await first_read(through) == through + 1
    with pytest.raises(BadInput, match=f"the stream begins at sequence {through + 1:,}"):
        await first_read(through - 1)


async def resting(log: JetStreamLog, worker: Living) -> None:
    """Wait until nothing waits for a decision and nothing has been appended for a while."""
    last, since = 0, time.monotonic()
    while time.monotonic() - since < 1.0:
        now = (await log.info()).last_seq
        if now != last or any(shard.view.waiting or shard.outbox for shard in worker.worker.shards.values()):
            last, since = now, time.monotonic()
        await asyncio.sleep(0.05)


async def until_gone(log: JetStreamLog) -> None:
    """Wait until the bucket has forgotten a worker that did not sign off."""
    from events.jetstream import KeyValueMembership

    membership, end = KeyValueMembership(log.connection), time.monotonic() + DEADLINE_S
    while await membership.members():
        assert time.monotonic() < end
        await asyncio.sleep(0.1)
