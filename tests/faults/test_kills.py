"""kill -9 of anything, at random moments, under load; judged from the log.

The short form runs by default; ``make test-faults`` runs the long one. A process's death does not test flushing: the
page cache outlives it. What a power cut does is another test's affair (``tests/faults/test_cut_stores.py``).

The short tests share a set, and each judges all that is in its log by then; the last one kills it.
"""

import asyncio
import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deploy.waiting import is_gone
from tests.faults.rig import Load, RunningSet, judge, running_set, waited

TARGETS = ("broker", "deciders-1", "deciders-2", "ledger")
RATE = 10.0
"""Inputs a second in the short form: all that is in the log is judged three times."""

SEED = int(os.environ.get("NEURAXIS_SEED", "1"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the shared set keeps its data."""
    return tmp_path_factory.mktemp("killed") / "set"


@pytest.fixture(scope="module")
def running(folder: Path) -> Iterator[RunningSet]:
    """The shared set."""
    with running_set(folder) as up:
        yield up


async def _hurt(running: RunningSet, rounds: int, rate: float, draw: random.Random) -> list[str]:
    """Kill programs at random moments under load; return the inputs that were accepted."""
    load, stop = Load(rate), asyncio.Event()
    async with running.log() as log:
        loading = asyncio.create_task(load.run(log, stop))
        await asyncio.sleep(1)
        for _ in range(rounds):
            victims = draw.sample(TARGETS, k=draw.choice([1, 1, 2]))
            for victim in victims:
                running.signal(victim, signal.SIGKILL)
            await asyncio.sleep(draw.uniform(0.3, 2.5))
        await asyncio.sleep(1)
        stop.set()
        await loading
    assert load.accepted
    return load.accepted


def _kill_rounds(running: RunningSet, rounds: int, rate: float) -> None:
    accepted = asyncio.run(_hurt(running, rounds, rate, random.Random(SEED)))
    waited(running.ready, "the set to be whole again")
    asyncio.run(judge(running, accepted))


def test_nothing_is_lost_or_done_twice_when_programs_are_killed(running: RunningSet) -> None:
    _kill_rounds(running, rounds=5, rate=RATE)


@pytest.mark.faults
def test_nothing_is_lost_or_done_twice_in_twenty_rounds_of_kills(tmp_path: Path) -> None:
    with running_set(tmp_path) as running:
        _kill_rounds(running, rounds=20, rate=25)


def test_a_worker_stopped_past_its_lease_and_woken_changes_nothing(running: RunningSet) -> None:
    """The zombie: it wakes up believing that it leads, and the fence turns it away."""

    async def freeze(running: RunningSet) -> list[str]:
        load, stop = Load(RATE), asyncio.Event()
        async with running.log() as log:
            loading = asyncio.create_task(load.run(log, stop))
            await asyncio.sleep(0.5)
            for victim in ("deciders-1", "deciders-2"):
                running.signal(victim, signal.SIGSTOP)
                await asyncio.sleep(5.0)
                running.signal(victim, signal.SIGCONT)
                await asyncio.sleep(1.0)
            stop.set()
            await loading
        return load.accepted

    accepted = asyncio.run(freeze(running))
    messages = asyncio.run(judge(running, accepted))
    assert accepted
    assert messages


def test_killing_the_whole_set_loses_nothing(running: RunningSet, folder: Path) -> None:
    """kill -9 of ``up`` takes its children along; a new set goes on where the log ends."""

    async def load_for(running: RunningSet, seconds: float) -> list[str]:
        load, stop = Load(RATE), asyncio.Event()
        async with running.log() as log:
            loading = asyncio.create_task(load.run(log, stop))
            await asyncio.sleep(seconds)
            stop.set()
            await loading
        return load.accepted

    accepted = asyncio.run(load_for(running, 2))
    pids = [running.pid(name) for name in TARGETS]
    running.process.kill()
    running.process.wait()
    waited(lambda: all(is_gone(pid) for pid in pids), "the children to die with their parent")
    with running_set(folder) as again:
        accepted += asyncio.run(load_for(again, 1))
        asyncio.run(judge(again, accepted))
