"""What a log costs as it grows: fenced appends, finding a partition's last event, and reading its history.

A fenced append is stored only if the last event of its partition is the one that the writer knows. One stream, flushed
at each append, is filled to each size in turn. At each size it prints the time of a fenced append, of the question for
a partition's last event, and of reading the partition's last thousand events. All should stay the same.

Run it with ``python -m bench.storage.growth [EVENTS...]``.
"""

import asyncio
import itertools
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from bench.harness.server import SYNCS, nats_server
from bench.harness.table import is_brief, record
from bench.storage.append import filter_of, record_of
from events.jetstream import JetStreamLog
from events.log import Append, Fence

SIZES = (10_000, 100_000) if is_brief() else (10_000, 100_000, 1_000_000)
"""Numbers of events at which the log is measured."""

PARTITIONS = 16
BATCH = 1_000
"""Events appended at once while the stream is filled; the server takes no more."""

SAMPLES = 200
"""Appends, and questions, that are timed at each size."""

READ = 1_000
"""Events of a partition that are read at each size."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """The median time of an operation on a log of ``events`` events; ``ratio`` is to that on the smallest log."""

    events: int
    case: str
    p50_ms: float
    ratio: float


async def _run(url: str, sizes: Sequence[int]) -> list[Row]:
    log = await JetStreamLog.connect(url)
    numbers = itertools.count()
    rows: list[Row] = []
    first: dict[str, float] = {}
    try:
        for size in sizes:
            await _fill(log, numbers, size)
            for case, measure in _CASES.items():
                median = await measure(log, numbers)
                ratio = median / first.setdefault(case, median)
                rows.append(Row(events=size, case=case, p50_ms=round(median, 3), ratio=round(ratio, 2)))
                print(f"{size:>10,} events  {case:32} {median:9.3f} ms  {ratio:6.2f} x the first", flush=True)
    finally:
        await log.close()
    return rows


async def _fill(log: JetStreamLog, numbers: "itertools.count[int]", size: int) -> None:
    missing = size - (await log.info()).last_seq
    while missing > 0:
        count = min(BATCH, missing)
        records = [record_of(number, number % PARTITIONS) for number in itertools.islice(numbers, count)]
        await log.append([Append(records, None)])
        missing -= count


async def _append_fenced(log: JetStreamLog, numbers: "itertools.count[int]") -> float:
    last, took = await log.last(filter_of(0)), []
    for _ in range(SAMPLES):
        stored = record_of(next(numbers), 0)
        began_s = time.perf_counter()
        last = await log.append([Append([stored], Fence(filter_of(0), last))])
        took.append(time.perf_counter() - began_s)
    return 1e3 * statistics.median(took)


async def _find_fence(log: JetStreamLog, _: "itertools.count[int]") -> float:
    took = []
    for number in range(SAMPLES):
        began_s = time.perf_counter()
        await log.last(filter_of(number % PARTITIONS))
        took.append(time.perf_counter() - began_s)
    return 1e3 * statistics.median(took)


async def _read_partition(log: JetStreamLog, _: "itertools.count[int]") -> float:
    last = await log.last(filter_of(1))
    began_s, count = time.perf_counter(), 0
    async for batch in log.history([filter_of(1)], max(0, last - READ * PARTITIONS), last):
        count += len(batch)
    if not count:
        raise RuntimeError("nothing was read")
    return 1e3 * (time.perf_counter() - began_s) * READ / count


_CASES: dict[str, Callable[[JetStreamLog, "itertools.count[int]"], Awaitable[float]]] = {
    "fenced append": _append_fenced,
    "last event of a partition": _find_fence,
    f"a partition's last {READ:,} events": _read_partition,
}


def main() -> None:
    """Print the rows as they come; a million events take about three minutes."""
    with nats_server(SYNCS[0]) as url:
        record(asyncio.run(_run(url, [int(size) for size in sys.argv[1:]] or SIZES)))


if __name__ == "__main__":
    main()
