"""A set under steady load for long: its memory, its lag and its latency by the minute, and whether they stay flat.

A whole set runs as ``neuraxis up`` starts it: all actors, the ledger, each append flushed before it is acknowledged, no
language model. First it gets as many requests as it can answer for five minutes, since an exchange costs more the more
an agent remembers, up to its limit. Then the most exchanges a second are measured, and requests come at a share of that
without waiting for answers, from people who come back. Each minute has a row: latency, refused requests, messages that
the ledger lacks, resident megabytes of each process, and megabytes on disk. At the end stands the
growth of memory over the last half, by a least-squares line, and the latency of the last third against that of the
first. Run it with ``python -m bench.system.soak [MINUTES [SHARE]]``.
"""

import asyncio
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import httpx
import msgspec
import numpy as np

from bench.harness.processes import resident_mb_by_process
from bench.harness.table import record
from bench.system.pass_through import SET_MODEL, UNDER_WAY, Load, running_set
from deploy.processes.running_set import RunFile

MINUTES = 60
SHARE = 0.7
"""The part of the highest rate at which requests come."""

PEOPLE = 500
"""People who ask in turn, one session each: so states grow with what is said, and not with who comes."""

MEASURED_S = 30.0
"""Seconds for which the highest rate is measured."""

WARM_UP_S = 300.0
"""Seconds for which the set answers as much as it can before that."""

_LAG_METRIC = "neuraxis_ledger_lag_messages "


class Minute(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured in a minute of the soak.

    Attributes:
        minute: Its number, from 1.
        answered: Requests of this minute that were answered; ``refused`` are all others.
        p50_ms: Median time of an answer; None if there was none.
        p99_ms: 99th percentile of that time; None if there was none.
        lag: Messages that the ledger did not have yet at the minute's end.
        resident_mb: Process -> megabytes in memory at the minute's end.
        stored_mb: Megabytes of the data folder: stream, snapshots and ledger.
    """

    minute: int
    answered: int
    refused: int
    p50_ms: float | None
    p99_ms: float | None
    lag: float
    resident_mb: dict[str, float]
    stored_mb: float


class Soaked(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a soak.

    Attributes:
        at_first_per_s: Exchanges a second of a new set while ``UNDER_WAY`` were under way.
        highest_per_s: Exchanges a second with ``UNDER_WAY`` under way, once its agent remembers as much as it keeps.
        rate_per_s: Requests a second of the soak.
        minutes: One row for each.
        growth_mb_per_hour: Process -> slope of its memory over the last half of the minutes.
        latency_ratio: p50 of the last third of the minutes, divided by that of the first third; None if one of the
            two has no answers.
    """

    at_first_per_s: float
    highest_per_s: float
    rate_per_s: float
    minutes: tuple[Minute, ...]
    growth_mb_per_hour: dict[str, float]
    latency_ratio: float | None


async def measure(
    minutes: int, share: float, minute_s: float = 60.0, measured_s: float = MEASURED_S, warm_up_s: float = WARM_UP_S
) -> Soaked:
    """Run a set under load for ``minutes`` of ``minute_s`` seconds each; print each as it ends."""
    rows: list[Minute] = []
    with running_set("") as run:
        async with Load.open(run.http, SET_MODEL, people=PEOPLE) as load:
            at_first = await load.saturated(UNDER_WAY, min(MEASURED_S, warm_up_s))
            await load.saturated(UNDER_WAY, max(0.0, warm_up_s - MEASURED_S))
            highest = await load.saturated(UNDER_WAY, measured_s)
            rate = highest * share
            print(
                f"at first {at_first:.1f} exchanges/s, now at most {highest:.1f}; requests at {rate:.1f}/s", flush=True
            )
            for number in range(1, minutes + 1):
                took, refused = await load.steady_or_refused(minute_s, rate)
                rows.append(await _minute(run, number, took, refused))
                print(_line(rows[-1]), flush=True)
    return Soaked(
        at_first_per_s=round(at_first, 1),
        highest_per_s=round(highest, 1),
        rate_per_s=round(rate, 1),
        minutes=tuple(rows),
        growth_mb_per_hour=growth_per_hour([row.resident_mb for row in rows], minute_s),
        latency_ratio=latency_ratio([row.p50_ms for row in rows]),
    )


async def _minute(run: RunFile, number: int, took: Sequence[float], refused: int) -> Minute:
    async with httpx.AsyncClient(base_url=run.http, trust_env=False, timeout=10) as http:
        metrics = (await http.get("/metrics")).text
    lag = next(line for line in metrics.splitlines() if line.startswith(_LAG_METRIC))
    # A process that ended was started again under another number.
    folder = Path(f"/proc/{run.pid}/cwd/.neuraxis")
    now = msgspec.json.decode((folder / "run.json").read_bytes(), type=RunFile)
    return Minute(
        minute=number,
        answered=len(took),
        refused=refused,
        p50_ms=_percentile_ms(took, 50),
        p99_ms=_percentile_ms(took, 99),
        lag=float(lag.removeprefix(_LAG_METRIC)),
        resident_mb={name: round(megabytes, 1) for name, megabytes in resident_mb_by_process(now).items()},
        stored_mb=round(_stored_mb(folder), 1),
    )


def _percentile_ms(took: Sequence[float], percent: int) -> float | None:
    """Return a percentile of sorted seconds, in milliseconds; None if there are none."""
    return round(1e3 * took[len(took) * percent // 100], 1) if took else None


def _stored_mb(folder: Path) -> float:
    total = 0
    for file in folder.rglob("*"):
        try:
            total += file.stat().st_blocks * 512
        except FileNotFoundError:  # replaced meanwhile
            continue
    return total / 1e6


def growth_per_hour(rows: Sequence[Mapping[str, float]], minute_s: float = 60.0) -> dict[str, float]:
    """Return each process's slope over the last half of the rows (one per minute), in the rows' unit per hour."""
    half = rows[len(rows) // 2 :]
    if len(half) < 2:
        return {}
    hours = np.arange(len(half)) * minute_s / 3600
    return {name: round(float(np.polyfit(hours, [row[name] for row in half], 1)[0]), 1) for name in half[0]}


def latency_ratio(minutes: Sequence[float | None]) -> float | None:
    """Return the median of the last third, at least one, divided by that of the first third; None if one is empty."""
    third = max(1, len(minutes) // 3)
    first, last = ([each for each in part if each is not None] for part in (minutes[:third], minutes[-third:]))
    return round(statistics.median(last) / statistics.median(first), 2) if first and last else None


def _line(row: Minute) -> str:
    memory = "  ".join(f"{name} {megabytes:.0f}" for name, megabytes in row.resident_mb.items())
    return (
        f"{row.minute:>3}  answered {row.answered:>6}  refused {row.refused:>3}  p50 {row.p50_ms or '-':>7} ms  "
        f"p99 {row.p99_ms or '-':>8} ms  lag {row.lag:>6.0f}  stored {row.stored_mb:>8.1f} MB  resident MB: {memory}"
    )


def main() -> None:
    """Soak a set, and print what each minute was like."""
    minutes = int(sys.argv[1]) if len(sys.argv) > 1 else MINUTES
    share = float(sys.argv[2]) if len(sys.argv) > 2 else SHARE
    began_s = time.perf_counter()
    soaked = asyncio.run(measure(minutes, share))
    record(soaked)
    growth = ", ".join(f"{name} {megabytes:+g}" for name, megabytes in soaked.growth_mb_per_hour.items())
    print(f"growth over the last half, MB an hour: {growth}")
    print(f"p50 of the last third / of the first: {soaked.latency_ratio}; {time.perf_counter() - began_s:.0f} s")


if __name__ == "__main__":
    main()
