"""The log's end was lost: what the ledger does not show of it is told by the snapshots, which had seen more."""

import asyncio
from pathlib import Path

import pytest

from deploy.config.loading import RUNNING_SECTIONS, load
from deploy.health.loss_from_snapshots import record_loss_from_snapshots
from deploy.processes.supervising.lifeline import READY
from events.jetstream import Access, JetStreamLog, KeyValueSnapshots
from events.ledger import LedgerWriter
from events.losses import Losses
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
