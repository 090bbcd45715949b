"""Open sessions: the memory that each takes, and whether many of them make an exchange slower.

Two sets run as ``neuraxis up`` starts them, one after the other, and answer as many exchanges. In one they come from a
few people who come back, in the other each from somebody new, so that the difference is what sessions take: the shared
agent remembers as many exchanges in both. Afterwards requests come at a fixed rate, from the same people again.

Run it with ``python -m bench.system.sessions [SESSIONS [PROCESSES]]``; ``PROCESSES`` of deciders share the partitions.
"""

import asyncio
import sys

from bench.harness.processes import resident_mb_by_process
from bench.harness.table import Row, percentile_rows, rows_of, show
from bench.system.pass_through import SET_MODEL, UNDER_WAY, Load, running_set

SESSIONS = 10_000
"""Sessions of the larger set, and exchanges of both."""

FEW = 100
"""Sessions of the smaller set."""

RATE = 20
"""Requests a second of the returning people."""

RETURN_S = 30.0
"""Seconds for which they come."""


async def measure(sessions: int, processes: int = 1, return_s: float = RETURN_S) -> list[Row]:
    """Return the rows of both sets: resident megabytes by process, kilobytes a session, and latency."""
    resident: dict[int, dict[str, float]] = {}
    took: dict[int, list[float]] = {}
    for people in (min(FEW, sessions // 2), sessions):
        with running_set("", options=("--set", f"runtime.processes={processes}")) as run:
            async with Load.open(run.http, SET_MODEL, people=people) as load:
                await load.send(UNDER_WAY, sessions)
                resident[people] = resident_mb_by_process(run)
                took[people] = await load.steady(return_s, RATE)
    few, many = resident
    names = {people: f"{people} sessions" for people in resident}
    rows = [row for people in resident for row in rows_of(resident[people], {}, names[people], "MB resident")]
    grown = {name: resident[many][name] - resident[few][name] for name in resident[few]}
    grown["all of them"] = sum(grown.values())
    rows += rows_of({name: 1e3 * mb / (many - few) for name, mb in grown.items()}, {}, "each more", "KB a session")
    samples = {names[people]: [found] for people, found in took.items()}
    return rows + percentile_rows(samples, {names[many]: (names[few],)}, f"{RATE}/s")


def main() -> None:
    """Measure and print the rows; takes about six minutes."""
    sessions = int(sys.argv[1]) if len(sys.argv) > 1 else SESSIONS
    show(asyncio.run(measure(sessions, int(sys.argv[2]) if len(sys.argv) > 2 else 1)))


if __name__ == "__main__":
    main()
