"""Replay of a ledger: folded, and every decision made again, compared with reading and decoding alone.

The peers do only parts of the work: raw sqlite3 returns rows; with msgspec, each body is decoded as its topic's type;
the ledger's own history adds headers and subjects, and ``decode`` the envelope. The difference between the last of them
and the fold is the deciders' work; some six deciders fold each event. Cases run in turns, and the median round counts.

Memory is the peak of a new process, over a half and over all of the file. It grows with the states, whose encoded size
is printed with it, and with the messages that wait for a decision, up to ``BACKLOG`` of ``events.replay.replay``.

Run it with ``python -m bench.storage.replay [LEDGER | EVENTS]``; without a file, a ledger is recorded first, by all
deciders.
"""

import asyncio
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import msgspec

from actors.registry import ACTORS
from bench.harness import replay_ledger
from bench.harness.table import Row, is_brief, measure_in_turns, rows_of, show
from deploy.replaying.parallel_replay import ReplayWork, replay_in_jobs
from events.decoding import decode
from events.errors import LedgerDamaged
from events.ledger import LedgerReader
from events.replay.replay import Replay, Report
from events.replay.run_replay import END, Point, run_replay
from events.replay.sources import LedgerSource
from schemas.catalogue import CATALOGUE
from schemas.persistent import encode_state

EVENTS = 12_000
"""Events of the ledger that is recorded, by default."""

ROUNDS = 3
JOBS = 2
"""Processes that share the replay in the cases named ``jobs``, each with some of the partitions."""

_KILO, _MEGA = 1024, 1024 * 1024

_RAW = "SELECT seq, time, subject, headers, data FROM events ORDER BY seq"
_TYPED = "SELECT seq, topic, data FROM events ORDER BY seq"
_RAW_CASE, _TYPED_CASE = "raw sqlite3", "raw sqlite3 and msgspec"
_HISTORY, _DECODED, _FOLD, _VERIFY = "ledger history", "ledger history, decoded", "fold", "fold, verified"


def _read_raw(path: Path) -> int:
    connection = sqlite3.connect(path)
    count = sum(1 for _ in connection.execute(_RAW))
    connection.close()
    return count


def _read_typed(path: Path) -> int:
    decoders = {topic: msgspec.json.Decoder(entry.event).decode for topic, entry in CATALOGUE.items()}
    connection = sqlite3.connect(path)
    count = 0
    for _, topic, data in connection.execute(_TYPED):
        decoders[topic](data)
        count += 1
    connection.close()
    return count


def _read_history(path: Path) -> int:
    with LedgerReader(path) as reader:
        return sum(len(batch) for batch in reader.history())


def _read_decoded(path: Path) -> int:
    with LedgerReader(path) as reader:
        return sum(decode(stored) is not None for batch in reader.history() for stored in batch)


async def _replayed(path: Path, verify: bool, upto: Point = END) -> tuple[Replay, Report]:
    async with _opened(path) as source:
        replay = Replay(tuple(ACTORS.values()), source.partitions, verify=verify)
        report = await run_replay(source, replay, upto, progress=lambda _: None)
    if not report.clean:
        raise LedgerDamaged(f"{path} does not replay cleanly, so that its figures would mean nothing")
    return replay, report


def _fold(path: Path, verify: bool, upto: Point = END) -> int:
    _, report = asyncio.run(_replayed(path, verify, upto))
    return report.events


@asynccontextmanager
async def _opened(path: Path) -> AsyncIterator[LedgerSource]:
    source = LedgerSource(path)
    try:
        yield source
    finally:
        source.close()


async def _in_jobs(path: Path, verify: bool) -> int:
    async with _opened(path) as source:
        work = ReplayWork(tuple(ACTORS), None, verify, END)
        report = await replay_in_jobs(source, partial(_opened, path), work, JOBS, lambda _: None)
    return report.events


async def _rate(work: Callable[[], int]) -> float:
    start = time.perf_counter()
    # In a thread, since some of the cases run an event loop of their own.
    return await asyncio.to_thread(work) / (time.perf_counter() - start)


async def measure(path: Path, rounds: int) -> list[Row]:
    """Measure every case in events a second."""
    cases: dict[str, Callable[[], int]] = {
        _RAW_CASE: lambda: _read_raw(path),
        _TYPED_CASE: lambda: _read_typed(path),
        _HISTORY: lambda: _read_history(path),
        _DECODED: lambda: _read_decoded(path),
        _FOLD: lambda: _fold(path, False),
        f"{_FOLD}, {JOBS} jobs": lambda: asyncio.run(_in_jobs(path, False)),
        _VERIFY: lambda: _fold(path, True),
        f"{_VERIFY}, {JOBS} jobs": lambda: asyncio.run(_in_jobs(path, True)),
    }
    # The first fold loads the models; in a long replay that time does not matter, so it is not measured.
    await asyncio.to_thread(_fold, path, True, Point(seq=200))
    medians = await measure_in_turns({name: partial(_rate, work) for name, work in cases.items()}, rounds)
    peers = {name: [peer for peer in _peers_of(name) if peer != name] for name in cases}
    return rows_of(medians, peers, f"{_count(path):,} events", "events/s")


def _peers_of(name: str) -> tuple[str, ...]:
    if name in (_RAW_CASE, _TYPED_CASE, _HISTORY, _DECODED):
        return _RAW_CASE, _TYPED_CASE
    return _DECODED, name.removesuffix(f", {JOBS} jobs")


def peaks(path: Path) -> list[Row]:
    """Measure the peak memory of a fold and the size of its states, encoded, over a half and over all."""
    whole = _count(path)
    rows: list[Row] = []
    for upto in (whole // 2, whole):
        found = dict(zip((f"peak memory, {upto:,} events", f"states, {upto:,} events"), _peak(path, upto), strict=True))
        rows += rows_of(found, {}, "fold", "MB")
    return rows


def _count(path: Path) -> int:
    with LedgerReader(path) as reader:
        return reader.info().rows


def _peak(path: Path, upto: int) -> list[float]:
    command = [sys.executable, "-m", "bench.storage.replay", "--peak", str(path), str(upto)]
    shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [float(each) for each in shown.split()]


def _print_peak(path: Path, upto: int) -> None:
    import resource  # not on Windows

    replay, _ = asyncio.run(_replayed(path, False, Point(seq=upto)))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / _KILO
    states = sum(len(encode_state(view.state)) for view in replay.views.values())
    print(peak, states / _MEGA)


def main() -> None:
    """Print the rows as a table."""
    if sys.argv[1:2] == ["--peak"]:
        _print_peak(Path(sys.argv[2]), int(sys.argv[3]))
        return
    given = sys.argv[1] if len(sys.argv) > 1 else str(EVENTS)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(given)
        if given.isdigit():
            path = Path(folder) / "ledger.db"
            replay_ledger.write(path, int(given))
        show(asyncio.run(measure(path, 1 if is_brief() else ROUNDS)) + (peaks(path) if os.name == "posix" else []))


if __name__ == "__main__":
    main()
