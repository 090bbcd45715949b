"""Whether the ledger can be written: asked of its process, over a real broker, on a disk that is really full."""

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

from deploy.health.readiness import NO_LEDGER, ledger_write_fault, query_ledger_fault
from events.jetstream import Access, Connection, JetStreamLog
from tests.broker import Broker
from tests.deploy.waiting import until
from tests.e2e.live import command, environment
from tests.full_disk import small_disk


def fault_at(broker: Broker) -> str:
    async def ask() -> str:
        connection = await Connection.open(Access(servers=broker.url))
        try:
            return await query_ledger_fault(connection)
        finally:
            await connection.close()

    return asyncio.run(ask())


@contextlib.contextmanager
def projecting(broker: Broker, ledger: Path, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a ledger's process for the length of the block."""

    async def made() -> None:
        await (await JetStreamLog.connect(broker.url)).close()

    asyncio.run(made())
    with (folder / "ledger.log").open("wb") as said:
        process = subprocess.Popen(
            command("worker", "ledger", "--nats", broker.url, "--ledger", str(ledger)),
            stderr=said,
            cwd=folder,
            env=environment(),
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_a_ledger_whose_disk_alone_is_full_says_so_until_there_is_room(broker: Broker, tmp_path: Path) -> None:
    assert fault_at(broker) == NO_LEDGER
    with (
        small_disk(tmp_path / "small", megabytes=8) as disk,
        projecting(broker, disk.folder / "ledger.db", tmp_path),
    ):
        until(lambda: not fault_at(broker), "the ledger is written")
        disk.fill()
        assert fault_at(broker) == "the ledger cannot be written: the disk is full: make room"
        disk.clear()
        # A row that could not be written meanwhile is waited out: the next attempt tells that there is room again.
        until(lambda: not fault_at(broker), "the ledger is written again")
        assert not list(disk.folder.glob(".ledger.db.look-*"))


def test_a_ledger_whose_disk_has_no_inodes_left_says_so_and_not_that_it_is_full(tmp_path: Path) -> None:
    with small_disk(tmp_path / "small", megabytes=2) as disk:
        ledger = disk.folder / "ledger.db"
        disk.use_up_inodes()
        assert "the disk has no inodes left: delete files" in ledger_write_fault(ledger)
        disk.give_inodes()
        assert ledger_write_fault(ledger) == ""


def test_a_folder_that_cannot_be_written_is_told_without_its_name(tmp_path: Path) -> None:
    assert ledger_write_fault(tmp_path / "ledger.db") == ""
    assert (
        ledger_write_fault(tmp_path / "none" / "ledger.db") == "the ledger cannot be written: No such file or directory"
    )
    with small_disk(tmp_path / "small", megabytes=1) as disk:
        disk.protect(True)
        assert "Read-only file system" in ledger_write_fault(disk.folder / "ledger.db")


def test_a_process_that_stands_still_does_not_hold_up_who_asks(broker: Broker, tmp_path: Path) -> None:
    with projecting(broker, tmp_path / "ledger.db", tmp_path) as process:
        until(lambda: not fault_at(broker), "the ledger is written")
        process.send_signal(signal.SIGSTOP)
        os.waitpid(process.pid, os.WUNTRACED)  # or it may have answered meanwhile
        try:
            assert "does not answer" in fault_at(broker)
        finally:
            process.send_signal(signal.SIGCONT)
