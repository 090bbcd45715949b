"""One passed-through exchange, step by step: when each event is decided, sent, stored and delivered, and what it costs.

A whole set runs as ``neuraxis up`` starts it, with its functions wrapped (``harness.path_probe``). Wrapping costs time:
so compare the parts with each other, and take the latency itself from ``bench.pass_through``. Requests come one at a
time. The time line gives the median over all exchanges of the milliseconds since the request was sent. Each stored
event is flushed once; its acknowledgement comes after that, its deliveries at about the same time. Processor time and
wake-ups (voluntary context switches) of each process are divided by the number of exchanges. Run it with ``python -m
bench.pass_through_steps [EXCHANGES]``.
"""

import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from bench.harness.path_probe import COUNTING, FOLDER
from bench.harness.processes import Used, used_by_set
from bench.pass_through import Load, running_set, served
from deploy.processes.running_set import RunFile

EXCHANGES = 100
APART_S = 0.05
"""Seconds between two requests, so that work that goes on after an answer does not slow the next request."""

WARM_UP = 50
SETTLE_S = 0.3
_PROBED = "bench.harness.path_probe"


class Step(msgspec.Struct, frozen=True):
    """What happened to an event of an exchange, with the milliseconds since the request was sent."""

    event: str
    what: str
    ms: float


class Measured(msgspec.Struct, frozen=True):
    """What was measured: the steps, what each process used for an exchange, and the microseconds of its parts."""

    steps: tuple[Step, ...]
    used: Mapping[str, Used]
    parts: Mapping[str, Mapping[str, tuple[float, float]]]
    took_ms: float


def measure(exchanges: int) -> Measured:
    """Run a set and send it requests one at a time."""
    with tempfile.TemporaryDirectory(prefix="neuraxis-path-") as name, served() as endpoint:
        folder = Path(name)
        with running_set(endpoint, _PROBED, **{FOLDER: name}) as run:
            sent, before, after = asyncio.run(_measure(run, folder / COUNTING, exchanges))
        records = [json.loads(file.read_text()) for file in folder.glob("*.json")]
    used = {process: after[process].since(one, exchanges) for process, one in before.items()}
    parts = {_process_of(each): _shares(each, exchanges) for each in records}
    took = statistics.median(end - begin for begin, end in sent) / 1e6
    return Measured(tuple(steps_of(sent, _marks_in(records))), used, parts, took)


async def _measure(
    run: RunFile, counting: Path, exchanges: int
) -> tuple[list[tuple[int, int]], dict[str, Used], dict[str, Used]]:
    async with Load.open(run.http) as load:
        await _one_by_one(load, WARM_UP)
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


def _shares(records: Mapping[str, Any], exchanges: int) -> dict[str, tuple[float, float]]:
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
    print(f"{'ms':>8}  event and what happened to it")
    for step in measured.steps:
        print(f"{step.ms:>8.2f}  {step.event}: {step.what}")
    print(f"{measured.took_ms:>8.2f}  the answer: received")
    print(f"\n{'CPU µs':>8} {'wake-ups':>8}  process, an exchange")
    for process, used in measured.used.items():
        print(f"{used.cpu_us:>8,.0f} {used.woken:>8,.0f}  {process}")
    for process, parts in measured.parts.items():
        print(f"\n{'CPU µs':>8} {'calls':>8}  part of {process}, an exchange")
        for part, (us, calls) in sorted(parts.items(), key=lambda each: -each[1][0]):
            if us >= 1:
                print(f"{us:>8,.0f} {calls:>8.1f}  {part}")


def main() -> None:
    """Measure and print; takes about half a minute."""
    show(measure(int(sys.argv[1]) if len(sys.argv) > 1 else EXCHANGES))


if __name__ == "__main__":
    main()
