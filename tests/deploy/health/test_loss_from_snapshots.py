"""The log's end was lost: what the ledger does not show of it is told by the snapshots, which had seen more."""

import asyncio
from pathlib import Path

import pytest

from actors.clock import ACTOR as CLOCK
from deploy.config.loading import RUNNING_SECTIONS, all_sections, load
from deploy.health.loss_from_snapshots import FETCHES, record_loss_from_snapshots
from deploy.processes import worker as worker_process
from deploy.processes.supervising.lifeline import READY, Lifeline
from deploy.processes.supervising.pulse import Pulse
from events.jetstream import Access, Connection, JetStreamLog, KeyValueSnapshots
from events.ledger import LedgerWriter
from events.loss_recording import record_loss
from events.losses import Losses
from events.partition_fold import Checkpoint
from events.snapshot import pack
from schemas.permissions import served_reads
from schemas.vocabulary.ledger import LossRecorded
from tests.actors.ledger.test_projector import records
from tests.broker import Broker
from tests.deploy.processes.test_worker import ALIVE_S, worker
from tests.deploy.waiting import until
from tests.events.ledger.messages import exchanges

LEFT, REACHED = 30, 40
"""Messages that the log has left, and those that it had when the latest snapshot was saved."""

CONFIG = load(RUNNING_SECTIONS, environment={})


async def write_ledger(path: Path, log: JetStreamLog, rows: int) -> None:
    """Write a ledger of the log's first messages, those included that it has lost."""
    writer = await LedgerWriter.open(path, log.stream, log.partitions)
    await writer.append(exchanges(20)[:rows])
    await writer.close()


@pytest.mark.parametrize(
    ("rows", "lost"),
    [
        pytest.param(None, (LEFT + 1, REACHED), id="no_ledger"),
        pytest.param(0, (LEFT + 1, REACHED), id="a_damaged_ledger"),
        pytest.param(10, (LEFT + 1, REACHED), id="a_ledger_that_was_behind"),
        pytest.param(LEFT, (LEFT + 1, REACHED), id="a_ledger_that_knows_of_no_loss"),
        pytest.param(35, (36, REACHED), id="a_ledger_that_knows_of_a_part"),
        pytest.param(REACHED, None, id="a_ledger_that_knows_of_all"),
    ],
)
def test_a_loss_that_the_ledger_does_not_show_is_known_by_the_snapshots(
    rows: int | None, lost: tuple[int, int] | None, broker: Broker, tmp_path: Path
) -> None:
    ledger = tmp_path / "ledger.db"

    async def found() -> list[LossRecorded]:
        log = await JetStreamLog.connect(broker.url)
        try:
            await log.append(records(exchanges(20)[:LEFT]))
            snapshots = await KeyValueSnapshots.over(log.connection)
            await snapshots.save("router.03", b"a state", REACHED)
            await snapshots.save("reflex.07", b"another state", LEFT)
            if rows:
                await write_ledger(ledger, log, rows)
            for _ in range(2):  # each start looks
                await record_loss_from_snapshots(Access(servers=broker.url), CONFIG, ledger)
            return [loss.event for loss in (await Losses.of(log, (await log.info()).last_seq)).found]
        finally:
            await log.close()

    if rows == 0:
        ledger.write_bytes(b"what a rotten disk has left of it" * 1_000)
    known = [
        LossRecorded(first_seq=first, through_seq=last, known_by="snapshots", given_again=True)
        for first, last in ([] if lost is None else [lost])
    ]
    assert asyncio.run(found()) == known


def test_a_stale_snapshot_tells_no_second_loss_of_what_the_ledger_has_told(broker: Broker, tmp_path: Path) -> None:
    """The ledger knew of more than the snapshot, which nothing renews while its partition is idle."""
    first = LossRecorded(first_seq=LEFT + 1, through_seq=REACHED + 20, known_by="ledger", given_again=True)

    async def found() -> list[LossRecorded]:
        log = await JetStreamLog.connect(broker.url)
        try:
            await log.append(records(exchanges(20)[:LEFT]))
            await (await KeyValueSnapshots.over(log.connection)).save("router.03", b"a state", REACHED)
            await record_loss(log, first, "neuraxis/test/ledger", "2030-01-01T00:00:00Z", "test")
            assert (await log.info()).last_seq < REACHED, "the stream has not come to where the snapshot was saved"
            await record_loss_from_snapshots(Access(servers=broker.url), CONFIG, tmp_path / "ledger.db")
            return [loss.event for loss in (await log.losses()).found]
        finally:
            await log.close()

    assert asyncio.run(found()) == [first]


def test_a_second_loss_within_the_sequences_of_the_first_is_told(broker: Broker, tmp_path: Path) -> None:
    """A snapshot that knew of the first one was made when the stream had come to a part of the lost sequences again."""
    first = LossRecorded(first_seq=LEFT + 1, through_seq=REACHED + 20, known_by="snapshots", given_again=True)
    second = LossRecorded(first_seq=LEFT + 2, through_seq=REACHED, known_by="snapshots", given_again=True)

    async def found() -> list[LossRecorded]:
        log = await JetStreamLog.connect(broker.url)
        try:
            await log.append(records(exchanges(20)[:LEFT]))
            await record_loss(log, first, "neuraxis/test/ledger", "2030-01-01T00:00:00Z", "test")
            standing = Checkpoint(CLOCK.initial(), REACHED, 0, 0, None)
            snapshots = await KeyValueSnapshots.over(log.connection)
            await snapshots.save("router.03", pack(CLOCK, "all", standing, losses=0), REACHED + 10)
            await snapshots.save("router.04", pack(CLOCK, "all", standing, losses=LEFT + 1), REACHED)
            for _ in range(2):  # each start looks
                await record_loss_from_snapshots(Access(servers=broker.url), CONFIG, tmp_path / "ledger.db")
            return [loss.event for loss in (await log.losses()).found]
        finally:
            await log.close()

    assert asyncio.run(found()) == [first, second]


def test_few_snapshots_are_fetched_at_once(broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each may take half a megabyte, and there are as many as partitions."""
    under_way, most, keys = 0, 0, set[str]()
    upto = KeyValueSnapshots.upto

    async def counted(self: KeyValueSnapshots, key: str) -> int | None:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        keys.add(key)
        try:
            return await upto(self, key)
        finally:
            under_way -= 1

    async def look() -> None:
        log = await JetStreamLog.connect(broker.url)
        try:
            await (await KeyValueSnapshots.over(log.connection)).save("router.03", b"a state", 0)
            monkeypatch.setattr(KeyValueSnapshots, "upto", counted)
            await record_loss_from_snapshots(Access(servers=broker.url), CONFIG, tmp_path / "ledger.db")
        finally:
            await log.close()

    asyncio.run(look())
    assert len(keys) > 50
    assert most == FETCHES


@pytest.mark.parametrize("prepared", [False, True])
def test_where_up_prepares_its_own_broker_the_ledgers_process_does_not_look_again(
    prepared: bool, broker: Broker, tmp_path: Path
) -> None:
    job = worker_process.Job(
        name="ledger",
        hosted=("ledger",),
        access=Access(servers=broker.url),
        config=CONFIG,
        ledger_file=tmp_path / "ledger.db",
        store=tmp_path if prepared else None,
    )

    async def found() -> int:
        log = await JetStreamLog.connect(broker.url)
        try:
            await log.append(records(exchanges(20)[:LEFT]))
            await (await KeyValueSnapshots.over(log.connection)).save("router.03", b"a state", REACHED)
            await worker_process._look_for_loss(job, "member")
            return len((await log.losses()).found)
        finally:
            await log.close()

    assert asyncio.run(found()) == (0 if prepared else 1)


def test_reads_are_served_while_the_ledgers_process_looks(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers that may not read the whole log wait for it."""
    served: list[str] = []
    subject = served_reads(("ledger",))[1].replace("*", "clock").replace(">", "MSG.GET.NEURAXIS")

    async def ask(access: Access, *_: object) -> None:
        connection = await Connection.open(access)
        try:
            reply = await connection.nc.request(subject, b"{}", timeout=10)
            served.append(str(reply.data))
        finally:
            await connection.close()
        stopped.set()

    async def run() -> None:
        job = worker_process.Job(
            name="ledger",
            hosted=("ledger",),
            access=Access(servers=broker.url),
            config=load(all_sections(), environment={}),
            ledger_file=tmp_path / "ledger.db",
        )
        log = await JetStreamLog.connect(broker.url)
        await log.close()
        running = asyncio.create_task(worker_process._run_on_one_log(job, Lifeline(None), Pulse("", supervised=False)))
        try:
            asked = asyncio.create_task(stopped.wait())
            await asyncio.wait((running, asked), timeout=ALIVE_S, return_when=asyncio.FIRST_COMPLETED)
            asked.cancel()
            if running.done():
                running.result()
        finally:
            running.cancel()
            await asyncio.wait((running,))

    stopped = asyncio.Event()
    monkeypatch.setattr(worker_process, "record_loss_from_snapshots", ask)
    asyncio.run(run())
    assert served


def test_a_ledgers_process_finds_the_loss_where_no_up_has_looked(broker: Broker, tmp_path: Path) -> None:
    """As under Compose, systemd and Kubernetes."""

    async def lose() -> None:
        log = await JetStreamLog.connect(broker.url)
        try:
            await log.append(records(exchanges(20)[:LEFT]))
            await (await KeyValueSnapshots.over(log.connection)).save("router.03", b"a state", REACHED)
        finally:
            await log.close()

    async def found() -> list[LossRecorded]:
        log = await JetStreamLog.connect(broker.url)
        try:
            return [loss.event for loss in (await log.losses()).found]
        finally:
            await log.close()

    asyncio.run(lose())
    loss = LossRecorded(first_seq=LEFT + 1, through_seq=REACHED, known_by="snapshots", given_again=True)
    for _ in range(2):  # each start looks
        with worker(broker, tmp_path, "ledger") as (_process, line):
            assert line.recv(64) == READY
            until(lambda: asyncio.run(found()) == [loss], "the loss is recorded once", ALIVE_S)
