"""Exchanges that a set answers itself: how many a second and how fast; its memory, its size on disk, and its start.

A whole set runs as ``neuraxis up`` starts it: all actors, the ledger, each append flushed before it is acknowledged, no
language model. *Start* is the time from the command to the first answer. *Saturated* keeps a fixed number of requests
under way. At a fixed rate, requests do not wait for answers. The peer is a chain of four hops in FastStream on a broker
that flushes alike; an exchange here has eleven events, of which eight follow each other.

Run it with ``python -m bench.system.exchanges [SECONDS]``.
"""

import asyncio
import contextlib
import sys
import time
from collections.abc import AsyncIterator, Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

from bench.harness.processes import resident_mb_by_process
from bench.harness.server import SYNCS, nats_server
from bench.harness.side import Side, open_faststream
from bench.harness.table import Row, is_brief, percentile_rows, rows_of, show
from bench.system.pass_through import SET_MODEL, UNDER_WAY, Load, running_set

SECONDS = 5.0 if is_brief() else 30.0
"""Seconds of each load, by default."""

RATE = 20
"""Requests a second at the fixed rate."""

OURS, PEER = "neuraxis", "faststream, pull, four hops"
_TEXT = "What did we discuss about the lease of the office? " * 3
_WARM_UP_S = 3.0


async def _run(seconds: float) -> list[Row]:
    rows: list[Row] = []
    began_s = time.perf_counter()
    with running_set("") as run:
        async with Load.open(run.http, SET_MODEL) as load:
            await load.ask()
            rows += rows_of({"start to the first answer": time.perf_counter() - began_s}, {}, "up", "s")
            await load.steady(_WARM_UP_S, RATE)
            took = await load.steady(seconds, RATE)
            rate = await load.saturated(UNDER_WAY, seconds)
        rows += rows_of({"resident, all processes": sum(resident_mb_by_process(run).values())}, {}, "up", "MB")
    rows += rows_of({"installed, without extras": installed_mb("neuraxis")}, {}, "install", "MB")
    async with _peer() as side:
        await side.saturated(UNDER_WAY)
        peer_rate = await side.saturated(UNDER_WAY)
        peer_took = await side.steady(RATE, seconds)
    rows += rows_of({OURS: rate, PEER: peer_rate}, {OURS: (PEER,)}, f"saturated, {UNDER_WAY} under way", "exchanges/s")
    return rows + percentile_rows({OURS: [took], PEER: [peer_took]}, {OURS: (PEER,)}, f"{RATE}/s")


@contextlib.asynccontextmanager
async def _peer() -> AsyncIterator[Side]:
    with nats_server(SYNCS[0]) as url:
        async with open_faststream(url, "pull", lambda _: _TEXT) as side:
            yield side


def installed_mb(name: str) -> float:
    """Return the megabytes of the files of a distribution and all that it needs, without extras."""
    return sum(map(_bytes_of, _needed_by(name))) / 1e6


def _needed_by(name: str) -> Iterator[str]:
    seen, wanted = set[str](), [(name, "")]
    while wanted:
        name, extra = wanted.pop()
        if f"{name}[{extra}]" in seen:
            continue
        seen.add(f"{name}[{extra}]")
        try:
            requirements = distribution(name).requires or ()
        except PackageNotFoundError:
            continue
        for requirement in map(Requirement, requirements):
            if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
                key = requirement.name.lower().replace("_", "-")
                wanted += [(key, each) for each in ("", *requirement.extras)]
    yield from {each.partition("[")[0] for each in seen}


def _bytes_of(name: str) -> int:
    try:
        files = distribution(name).files or ()
    except PackageNotFoundError:
        return 0
    paths = [Path(str(file.locate())) for file in files]
    return sum(path.stat().st_size for path in paths if path.is_file())


def main() -> None:
    """Measure and print the rows; takes about two minutes."""
    show(asyncio.run(_run(float(sys.argv[1]) if len(sys.argv) > 1 else SECONDS)))


if __name__ == "__main__":
    main()
