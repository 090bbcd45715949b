"""Measures cases in turns, so that a noisy machine affects all of them equally, and prints them as rows of a table."""

import os
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

RECORDS = "NEURAXIS_BENCH_RECORDS"
"""Environment variable with the folder that benchmarks write what they find into, as JSON; unset: they do not."""

BRIEF = "NEURAXIS_BENCH_BRIEF"
"""Environment variable that is set where benchmarks measure what the table of aims needs, and no more."""

LONGEST = "NEURAXIS_BENCH_LONGEST_S"
"""Environment variable with the most seconds for which :func:`percentiles` repeats one piece of work; unset: as long as
each benchmark has it."""

Measure = Callable[[], Awaitable[float]]
"""Runs a case once; returns its value."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One case under a ``setting`` (such as a rate): the median of its rounds, and its ratio to each peer's median."""

    case: str
    setting: str
    value: float
    unit: str
    ratios: dict[str, float]


def percentiles(work: Callable[[], object], seconds: float) -> tuple[float, float]:
    """Repeat ``work`` for ``seconds``, at most 20,000 times; return median and 99th percentile of its time in µs."""
    work()
    samples: list[int] = []
    end = time.perf_counter() + min(seconds, float(os.environ.get(LONGEST, seconds)))
    while not samples or (time.perf_counter() < end and len(samples) < 20_000):
        start = time.perf_counter_ns()
        work()
        samples.append(time.perf_counter_ns() - start)
    return percentiles_of(samples)


def percentiles_of(samples_ns: Iterable[int]) -> tuple[float, float]:
    """Return median and 99th percentile of nanoseconds, in microseconds."""
    ordered = sorted(samples_ns)
    return ordered[len(ordered) // 2] / 1e3, ordered[len(ordered) * 99 // 100] / 1e3


def in_turns(cases: Iterable[str], rounds: int) -> Iterator[str]:
    """Yield every case once a round, in an order that is reversed each time."""
    order = list(cases)
    for number in range(rounds):
        yield from order if number % 2 == 0 else reversed(order)


async def measure_in_turns(cases: Mapping[str, Measure], rounds: int) -> dict[str, float]:
    """Run every case once a round, in turns; return the median of each."""
    found: dict[str, list[float]] = {case: [] for case in cases}
    for case in in_turns(cases, rounds):
        found[case].append(await cases[case]())
    return {case: statistics.median(values) for case, values in found.items()}


def rows_of(medians: Mapping[str, float], peers: Mapping[str, Sequence[str]], setting: str, unit: str) -> list[Row]:
    """Return a row for every case; ``peers`` names the cases that each is compared with."""
    return [
        Row(
            case=case,
            setting=setting,
            value=round(value, 2),
            unit=unit,
            ratios={peer: round(value / medians[peer], 2) for peer in peers.get(case, ())},
        )
        for case, value in medians.items()
    ]


def percentile_rows(
    rounds: Mapping[str, Sequence[Sequence[float]]], peers: Mapping[str, Sequence[str]], setting: str
) -> list[Row]:
    """Return rows of the 50th and 99th percentiles in milliseconds: for each, the median of the rounds' percentiles.

    ``rounds`` holds every round's sorted samples in seconds, by case; ``peers`` as for ``rows_of``.
    """
    rows: list[Row] = []
    for percent in (50, 99):
        medians = {
            name: statistics.median(1e3 * samples[len(samples) * percent // 100] for samples in found)
            for name, found in rounds.items()
        }
        rows += rows_of(medians, peers, f"{setting}, p{percent}", "ms")
    return rows


def is_brief() -> bool:
    """Whether to measure what the table of aims (``bench.harness.aims``) needs, and no more."""
    return bool(os.environ.get(BRIEF))


def record(found: object) -> None:
    """Write what a benchmark found as JSON into the folder that :data:`RECORDS` names, if it names one."""
    folder = os.environ.get(RECORDS)
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    if folder and spec is not None:
        Path(folder, f"{spec.name.rpartition('.')[2]}.json").write_bytes(msgspec.json.encode(found))


def show(rows: Sequence[Row]) -> None:
    """Print rows as a table, and record them."""
    record(rows)
    case, setting = (max(len(text) for text in column) for column in zip(*((r.case, r.setting) for r in rows)))  # noqa: B905
    for row in rows:
        ratios = ", ".join(f"{ratio:g} x {peer}" for peer, ratio in row.ratios.items())
        print(
            f"{row.setting.ljust(setting)}  {row.case.ljust(case)}  {row.value:>11,.2f} {row.unit}  {ratios}".rstrip()
        )
