"""A set that is restarted, divided further or restored while inputs arrive: judged as after any fault."""

import asyncio
import json
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from events.decoding import decode
from events.ledger import LedgerReader
from schemas.vocabulary.gateway import InputReceived
from tests.faults.rig import REST, Load, RunningSet, judge, judged, read_all, running_set, waited
from tests.forked import forked
from tests.judging import exchanges, unfinished

FEW = ("--set", "log.agents=2", "--set", "log.sessions=4")
MORE = ("--set", "log.agents=4", "--set", "log.sessions=8")
PROGRAMS = ("deciders-1", "deciders-2", "ledger", "gateway", "broker")
GIVEN_S = 60.0


@asynccontextmanager
async def under_load(running: RunningSet, load: Load) -> AsyncIterator[None]:
    """Send inputs for the length of a block, and until the last of them is accepted or refused."""
    stop = asyncio.Event()
    async with running.log() as log:
        loading = asyncio.create_task(load.run(log, stop))
        try:
            yield
        finally:
            stop.set()
            await loading


async def more(load: Load, count: int = 10) -> None:
    """Wait until so many more inputs are accepted."""
    wanted, end = len(load.accepted) + count, time.monotonic() + GIVEN_S
    while len(load.accepted) < wanted:
        assert time.monotonic() < end, "no input was ever accepted again"
        await asyncio.sleep(0.05)


async def restarted(running: RunningSet, name: str) -> None:
    """Have a program end in good order, and wait until the set is whole again with another process of it."""
    before = pid_of(running, name)
    running.signal(name, signal.SIGTERM)

    def is_back() -> bool:
        return pid_of(running, name) not in (0, before) and running.ready()

    await asyncio.to_thread(waited, is_back, f"{name} to be back")


def command(folder: Path, *arguments: str) -> str:
    told = forked(arguments, folder=folder, timeout=2 * GIVEN_S)
    assert told.returncode == 0, told.stderr
    return told.stdout


def pid_of(running: RunningSet, name: str) -> int:
    run = running.run_file()
    return 0 if run is None else next(each.pid for each in run.processes if each.name == name)


@pytest.mark.faults
def test_a_restart_of_one_program_after_the_other_under_load_loses_nothing(tmp_path: Path) -> None:
    async def roll(running: RunningSet, load: Load) -> None:
        async with under_load(running, load):
            await more(load)
            for name in PROGRAMS:
                await restarted(running, name)
                await more(load)

    with running_set(tmp_path) as running:
        load = Load(rate=6)
        asyncio.run(roll(running, load))
        asyncio.run(judge(running, load.accepted))


@pytest.mark.faults
def test_a_log_that_is_divided_between_two_times_of_load_loses_nothing(tmp_path: Path) -> None:
    """Inputs are under way when the set is stopped; they end before the log is divided, as its page says."""

    async def load_on(running: RunningSet, load: Load) -> None:
        async with under_load(running, load):
            await more(load, 25)

    async def ended(running: RunningSet) -> None:
        end = time.monotonic() + REST
        async with running.log() as log:
            while left := unfinished(await read_all(log)):
                assert time.monotonic() < end, left
                await asyncio.sleep(0.2)

    load = Load(rate=8)
    with running_set(tmp_path, flags=FEW) as running:
        asyncio.run(load_on(running, load))
        asyncio.run(ended(running))
    end = time.monotonic() + GIVEN_S
    while (
        told := forked(
            ("log", "repartition", "--agents", "4", "--sessions", "8", "--data", str(tmp_path / "data"), "--json"),
            folder=tmp_path,
            timeout=2 * GIVEN_S,
        )
    ).returncode:
        # An end is not the last that an exchange leads to: what is left is decided by a set that runs once more.
        assert time.monotonic() < end, told.stderr
        with running_set(tmp_path, flags=FEW) as running:
            asyncio.run(judge(running, load.accepted))
    assert json.loads(told.stdout)["sessions"] == 8
    with running_set(tmp_path, flags=MORE) as running:
        asyncio.run(load_on(running, load))
        asyncio.run(judge(running, load.accepted))


@pytest.mark.faults
def test_a_set_that_is_restored_from_a_backup_made_under_load_ends_what_was_open_and_goes_on(tmp_path: Path) -> None:
    first, second, load = tmp_path / "first", tmp_path / "second", Load(rate=8)

    async def back_up(running: RunningSet) -> None:
        async with under_load(running, load):
            await more(load)
            await asyncio.to_thread(command, first, "backup", "monday", "--data", str(running.data.path), "--json")
            await more(load)

    with running_set(first) as running:
        asyncio.run(back_up(running))
        asyncio.run(judge(running, load.accepted))
    with LedgerReader(first / "monday" / "ledger.db") as backup:
        kept = [stored for batch in backup.history() for stored in batch]
    inputs = list(exchanges(kept, InputReceived))
    assert inputs
    assert set(inputs) <= set(load.accepted)

    second.mkdir()
    command(second, "restore", str(first / "monday"), "--data", str(second / "data"))
    after = Load(rate=8)

    async def go_on(running: RunningSet) -> None:
        async with under_load(running, after):
            await more(after, 20)
        async with running.log() as log:
            messages, verdict = await judged(log, running.data.ledger, [*inputs, *after.accepted])
        assert verdict.broken == []
        assert [decode(each) for each in messages[: len(kept)]] == [decode(each) for each in kept]

    with running_set(second) as running:
        asyncio.run(go_on(running))
