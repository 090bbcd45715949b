"""One exchange step by step: what each process does for it, and what that costs.

A whole set runs as ``neuraxis up`` starts it, with its functions wrapped (``path_probe``), once for an exchange that
the set itself answers (without a language model), and once for one that it passes on. Requests come one at a time.
For each process it prints how often an exchange makes it read, decode, dispatch, decide, evolve, append, allocate
and wake up, with the microseconds of one of these, and the processor time of all parts. The time line gives the median
over all exchanges of the milliseconds since the request was sent.

Wrapping costs time: so compare the parts with each other, and take the latency itself from
``bench.system.pass_through``. A flush is the wait from an append until its acknowledgement. Wake-ups are voluntary
context switches. Allocations are counted in a run of their own, by memray, where that is installed.

Run it with ``python -m bench.system.path [EXCHANGES]``.
"""

import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec

from bench.harness.processes import Used, used_by_set
from bench.harness.table import record
from bench.system.pass_through import ENDPOINT_MODEL, SET_MODEL, Load, running_set, served
from bench.system.path_costs import Cost, costs_of, flushes_in_a_row, together
from bench.system.path_probe import ALLOCATIONS, COUNTING, FOLDER
from deploy.processes.running_set import RunFile

EXCHANGES = 100
"""Exchanges that are measured on each path, by default."""

APART_S = 0.05
"""Seconds between two requests, so that work that goes on after an answer does not slow the next request."""

PATHS = {"answered": SET_MODEL, "passed on": ENDPOINT_MODEL}
"""Path of an exchange -> the model that its request names."""

EVERY = "all of them"
"""In place of a process's name: all processes together."""

WARM_UP = 50
"""Exchanges before counting begins."""

SETTLE_S = 0.3
"""Seconds to wait for work that goes on after an answer, before the use of processes is read."""

_PROGRAM = "bench.system.path_probe"  # the command line with probes


class Step(msgspec.Struct, frozen=True):
    """What happened to an event of an exchange, with the milliseconds since the request was sent."""

    event: str
    what: str
    ms: float


class Measured(msgspec.Struct, frozen=True):
    """What was measured on one path.

    Attributes:
        path: Its name in :data:`PATHS`.
        steps: The time line.
        costs: Process -> what it did for an exchange, ``all of them`` included.
        used: Process -> its processor time and wake-ups for an exchange.
        parts: Process -> part of its work -> microseconds and calls for an exchange.
        flushes_in_a_row: Flushes, one after another, between an input and its answer.
        took_ms: The median time from a request to its answer.
    """

    path: str
    steps: tuple[Step, ...]
    costs: Mapping[str, Mapping[str, Cost]]
    used: Mapping[str, Used]
    parts: Mapping[str, Mapping[str, tuple[float, float]]]
    flushes_in_a_row: float
    took_ms: float


def measure(path: str, exchanges: int, warm_up: int = WARM_UP) -> Measured:
    """Run a set and send it requests of one path, one at a time."""
    run = _run(path, exchanges, warm_up, allocations=False)
    records = run.records
    used = {process: run.after[process].since(one, exchanges) for process, one in run.before.items()}
    costs = {_process_of(each): costs_of(each, exchanges) for each in records}
    stored = [(*event[:3], (pid, event[3])) for pid, each in enumerate(records) for event in each["stored"]]
    return Measured(
        path,
        tuple(steps_of(run.sent, _marks_in(records))),
        {**costs, EVERY: together(costs.values())},
        used,
        {_process_of(each): _parts_of(each, exchanges) for each in records},
        flushes_in_a_row(stored),
        statistics.median(end - begin for begin, end in run.sent) / 1e6,
    )


def allocations(path: str, exchanges: int) -> dict[str, float]:
    """Return how many allocations an exchange makes in each process; empty if memray is not installed."""
    return _run(path, exchanges, WARM_UP, allocations=True).allocations if find_spec("memray") else {}


class _Run(msgspec.Struct, frozen=True):
    """A run of a set: when requests were sent and answered, use before and after, records, and allocations."""

    sent: list[tuple[int, int]]
    before: dict[str, Used]
    after: dict[str, Used]
    records: list[dict[str, Any]]
    allocations: dict[str, float]


def _run(path: str, exchanges: int, warm_up: int, *, allocations: bool) -> _Run:
    model = PATHS[path]
    with tempfile.TemporaryDirectory(prefix="neuraxis-path-") as name, served() as endpoint:
        folder, url = Path(name), endpoint if model == ENDPOINT_MODEL else ""
        if allocations:
            (folder / ALLOCATIONS).touch()
        with running_set(url, _PROGRAM, **{FOLDER: name}) as run:
            sent, before, after = asyncio.run(_measure(run, folder / COUNTING, model, exchanges, warm_up))
        records = {file.stem: json.loads(file.read_text()) for file in folder.glob("*.json")}
        made = {
            _process_of(each): _allocations_in(file) / exchanges
            for pid, each in records.items()
            if (file := folder / f"{pid}.memray").exists()
        }
    return _Run(sent, before, after, list(records.values()), made)


def _allocations_in(file: Path) -> int:
    import memray

    freeing = {memray.AllocatorType.FREE, memray.AllocatorType.MUNMAP, memray.AllocatorType.PYMALLOC_FREE}
    with closing(memray.FileReader(file)) as reader:
        return sum(each.allocator not in freeing for each in reader.get_allocation_records())


async def _measure(
    run: RunFile, counting: Path, model: str, exchanges: int, warm_up: int
) -> tuple[list[tuple[int, int]], dict[str, Used], dict[str, Used]]:
    async with Load.open(run.http, model) as load:
        await _one_by_one(load, warm_up)
        await asyncio.to_thread(counting.touch)
        await asyncio.sleep(SETTLE_S)
        before = used_by_set(run)
        sent = await _one_by_one(load, exchanges)
        await asyncio.sleep(SETTLE_S)
        after = used_by_set(run)
        await asyncio.to_thread(counting.unlink)
    return sent, before, after


async def _one_by_one(load: Load, count: int) -> list[tuple[int, int]]:
    """Send requests; return when each was sent and answered, in nanoseconds of the machine's monotonic clock."""
    found = []
    for _ in range(count):
        began_ns = time.monotonic_ns()
        await load.ask()
        found.append((began_ns, time.monotonic_ns()))
        await asyncio.sleep(APART_S)
    return found


def _process_of(records: Mapping[str, Any]) -> str:
    arguments = records["arguments"]
    return str(arguments[arguments.index("--name") + 1] if "--name" in arguments else arguments[0])


def _parts_of(records: Mapping[str, Any], exchanges: int) -> dict[str, tuple[float, float]]:
    return {part: (ns / 1e3 / exchanges, records["calls"][part] / exchanges) for part, ns in records["ns"].items()}


def _marks_in(records: Sequence[Mapping[str, Any]]) -> list[tuple[int, str, str]]:
    """Return (when, what, which event) of all processes, in the order of time."""
    found = []
    for each in records:
        for at_ns, what, _, topic, _ in each["marks"]:
            where = f" to {_process_of(each)}" if what == "delivered" else ""
            found.append((at_ns, what + where, topic.removeprefix("forged_id.") or "the upstream"))
    return sorted(found)


def steps_of(sent: Sequence[tuple[int, int]], marks: Sequence[tuple[int, str, str]]) -> list[Step]:
    """Return the steps that at least half of the exchanges have, in the order of their median time.

    A mark belongs to the exchange whose request was sent last before it.
    """
    times: dict[tuple[str, str], list[float]] = defaultdict(list)
    index = 0
    seen: set[tuple[str, str]] = set()
    for at_ns, what, event in marks:
        while index + 1 < len(sent) and sent[index + 1][0] <= at_ns:
            index, seen = index + 1, set()
        if sent and at_ns >= sent[index][0] and (event, what) not in seen:
            seen.add((event, what))
            times[event, what].append((at_ns - sent[index][0]) / 1e6)
    steps = [
        Step(event, what, round(statistics.median(found), 2))
        for (event, what), found in times.items()
        if 2 * len(found) >= len(sent)
    ]
    return sorted(steps, key=lambda step: step.ms)


def show(measured: Measured) -> None:
    """Print what was measured."""
    print(f"\n== an exchange that is {measured.path}\n\n{'ms':>8}  event and what happened to it")
    for step in measured.steps:
        print(f"{step.ms:>8.2f}  {step.event}: {step.what}")
    print(f"{measured.took_ms:>8.2f}  the answer: received")
    print(f"{measured.flushes_in_a_row:>8g}  flushes in a row up to the answer")
    for process, costs in measured.costs.items():
        print(f"\n{'count':>9} {'µs each':>9} {'µs':>9}  {process}, an exchange")
        for unit, cost in costs.items():
            times = ("", "") if cost.us is None else (f"{cost.us:,.1f}", f"{cost.count * cost.us:,.0f}")
            print(f"{cost.count:>9,.1f} {times[0]:>9} {times[1]:>9}  {unit}")
    print(f"\n{'CPU µs':>9} {'wake-ups':>9}  process, an exchange")
    for process, used in measured.used.items():
        print(f"{used.cpu_us:>9,.0f} {used.woken:>9,.1f}  {process}")
    for process, parts in measured.parts.items():
        print(f"\n{'CPU µs':>9} {'calls':>9}  part of {process}, an exchange")
        for part, (us, calls) in sorted(parts.items(), key=lambda each: -each[1][0]):
            if us >= 1:
                print(f"{us:>9,.0f} {calls:>9.1f}  {part}")


def main() -> None:
    """Measure and print; takes about two minutes."""
    exchanges = int(sys.argv[1]) if len(sys.argv) > 1 else EXCHANGES
    found = []
    for path in PATHS:
        measured = measure(path, exchanges)
        made = allocations(path, exchanges)
        costs = {
            process: {
                **costs,
                **({"allocations": Cost(round(made[process], 1))} if process in made else {}),
                **({"wake-ups": Cost(round(measured.used[process].woken, 1))} if process in measured.used else {}),
            }
            for process, costs in measured.costs.items()
            if process != EVERY
        }
        found.append(msgspec.structs.replace(measured, costs={**costs, EVERY: together(costs.values())}))
        show(found[-1])
    record(found)


if __name__ == "__main__":
    main()
