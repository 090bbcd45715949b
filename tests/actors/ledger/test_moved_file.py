"""A ledger that somebody moves, deletes or replaces while it is written: a new one is written, and it is said."""

import asyncio
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from events.ledger import back_up, compare, verify
from tests.actors.ledger.test_projector import DEADLINE_S, Run, in_world, log_of, records
from tests.events.ledger.messages import exchanges, read
from tests.simulated import SimulatedConnection, SimulatedLog, SimulatedStream


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while not condition():  # noqa: ASYNC110 - it happens on the disk
            await asyncio.sleep(0.05)


def move(path: Path) -> None:
    path.rename(path.with_name("aside.db"))


def move_with_its_log(path: Path) -> None:
    for file in sorted(path.parent.glob("ledger.db*")):
        file.rename(file.with_name(file.name.replace("ledger", "aside")))


def replace(path: Path) -> None:
    move(path)
    back_up(path.with_name("early.db"), path.with_name("draft.db"))
    path.with_name("draft.db").rename(path)


@pytest.mark.parametrize("away", [Path.unlink, move, move_with_its_log, replace])
def test_a_file_that_is_taken_away_while_it_is_written_is_written_anew(
    away: Callable[[Path], None], tmp_path: Path
) -> None:
    path, aside = tmp_path / "ledger.db", tmp_path / "aside.db"

    async def body(stream: SimulatedStream) -> None:
        log = log_of(stream)
        await log.append(records(exchanges(3)))
        run = Run(log, path)
        await run.reaches(12)
        back_up(path, tmp_path / "early.db")
        await log.append(records(exchanges(6)[12:]))
        await run.reaches(24)
        with capture_logs() as lines:
            away(path)
            await until(lambda: any(line["event"] == "ledger_file_gone" for line in lines))
            await run.until(lambda: run.reports[-1].position >= 24 and path.exists())
        await log.append(records(exchanges(9)[24:]))
        await run.reaches(36)
        await run.stop()
        assert run.reports[-1].trouble == ""
        assert (await compare(path, log)).ok

    in_world(body)
    assert verify(path).ok
    assert len(read(path)) >= 36
    if away is not Path.unlink:
        assert verify(aside).ok
        assert len(read(aside)) >= 24, "rows of the file that was moved are only in the log that it left behind"


@pytest.mark.parametrize("is_link", [False, True])
def test_a_folder_that_is_gone_is_trouble_and_is_not_made_again(is_link: bool, tmp_path: Path) -> None:
    """Behind a link it may be that of a disk that is not mounted: the ledger would be made on another disk."""
    path = file = tmp_path / "set" / "ledger.db"
    if is_link:
        path = tmp_path / "link.db"
        path.symlink_to(file)
        file.parent.mkdir()

    async def body(stream: SimulatedStream) -> None:
        log = log_of(stream)
        await log.append(records(exchanges(3)))
        run = Run(log, path)
        await run.reaches(12)
        shutil.rmtree(file.parent)
        await run.until(lambda: "is gone" in run.reports[-1].trouble)
        assert not file.parent.exists()
        os.mkdir(file.parent)
        await run.until(lambda: run.reports[-1].position >= 12 and not run.reports[-1].trouble)
        await run.stop()
        assert (await compare(path, log)).ok

    in_world(body)
    assert verify(path).ok


def test_a_file_that_alone_holds_what_was_removed_from_the_stream_is_asked_back(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"

    class Trimmed(SimulatedLog):
        @property
        def trimmed_through(self) -> int:
            return 8

    async def body(stream: SimulatedStream) -> None:
        log = Trimmed(SimulatedConnection(stream))
        await log.append(records(exchanges(3)))
        run = Run(log, path)
        await run.reaches(12)
        move(path)
        await run.until(lambda: "up to sequence 8 is in it alone: put it back" in run.reports[-1].trouble)
        assert not path.exists()
        path.with_name("aside.db").rename(path)
        await log.append(records(exchanges(4)[12:]))
        await run.reaches(16)
        assert run.reports[-1].trouble == ""
        await run.stop()

    in_world(body)
    assert verify(path).ok
    assert len(read(path)) >= 16
