"""The simulated log with all faults at once: what may never happen does not, in any order, and one seed repeats it."""

import asyncio
import hashlib
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

from events.errors import Conflict, LogError
from tests.each import each
from tests.events.setting import fenced, plain, record
from tests.events.simulated_world import in_world, log_of
from tests.simulated import STORMY, Incident, SimulatedStream

ALL = "log.*.00.reflex.>"


async def stormy_life(stream: SimulatedStream) -> dict[str, list[tuple[int, bytes]]]:
    """Three writers behind one fence, one without, and two readers; return what the readers saw."""
    seen: dict[str, list[tuple[int, bytes]]] = {"one": [], "other": []}

    async def writer(name: int) -> None:
        log = log_of(stream)
        for step in range(8):
            records = [record(data=f"{name}.{step}.{i}".encode(), id=f"{name}.{step}.{i}") for i in range(1 + step % 3)]
            while True:
                try:
                    await log.append([fenced(ALL, await log.last(ALL), *records)])
                    break
                except Conflict:
                    if any(stored.data == records[0].data for stored in stream.store.messages):
                        break
                except LogError:
                    await asyncio.sleep(0.1)

    async def edge() -> None:
        log = log_of(stream)
        for step in range(8):
            while True:
                try:
                    await log.append([plain(record(data=f"edge.{step}".encode(), id=f"edge.{step}"))])
                    break
                except LogError:
                    await asyncio.sleep(0.1)

    async def reader(name: str) -> None:
        log = log_of(stream)
        while True:
            try:
                tail = await log.tail([ALL], 0)
                break
            except LogError:
                continue
        while True:
            seen[name].extend((stored.seq, stored.data) for stored in await tail.next())

    async with asyncio.TaskGroup() as writers:
        readers = [asyncio.create_task(reader(name)) for name in seen]
        for name in range(3):
            writers.create_task(writer(name))
        writers.create_task(edge())
    await asyncio.sleep(60)
    for reading in readers:
        reading.cancel()
    await asyncio.gather(*readers, return_exceptions=True)
    return seen


@each("seed", range(40))
def test_in_any_weather_nothing_acknowledged_is_lost_or_doubled_and_tails_see_it_all(seed: int) -> None:
    async def body(stream: SimulatedStream) -> None:
        seen = await stormy_life(stream)
        expected = [(stored.seq, stored.data) for stored in stream.store.messages]
        assert seen == {"one": expected, "other": expected}
        wanted = [f"{name}.{step}.{i}" for name in range(3) for step in range(8) for i in range(1 + step % 3)]
        wanted += [f"edge.{step}" for step in range(8)]
        assert sorted(data.decode() for _, data in expected) == sorted(wanted)

    in_world(body, STORMY, seed)


def test_every_kind_of_fault_is_met_within_a_few_worlds() -> None:
    met = sum((in_world(stormy_life, STORMY, seed).incidents for seed in range(30)), start=Counter[Incident]())
    elsewhere = {
        Incident.KILLED,
        Incident.STORED_AFTER_DEATH,
        Incident.MEMBER_EXPIRED,
        Incident.SNAPSHOT_LOST,
        Incident.SNAPSHOT_STALE,
        Incident.SNAPSHOT_CORRUPT,
    }
    assert set(Incident) - elsewhere <= {incident for incident, count in met.items() if count}


def fingerprint(seed: int) -> str:
    """Return a hash of all that happened in a stormy world."""
    stream = in_world(stormy_life, STORMY, seed)
    everything = repr((stream.store.messages, sorted(stream.incidents.items())))
    return hashlib.sha256(everything.encode()).hexdigest()


def test_a_seed_gives_the_same_world_in_another_process() -> None:
    script = f"from {__name__} import fingerprint; print(*map(fingerprint, range(3)))"
    found = [
        subprocess.run(
            [sys.executable, "-c", script],
            cwd=Path(__file__).parents[4],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        ).stdout.split()
        for hash_seed in ("1", "2")
    ]
    assert found[0] == found[1] == [fingerprint(seed) for seed in range(3)]
    assert len(set(found[0])) == 3
