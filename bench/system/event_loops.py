"""An exchange on uvloop, and on asyncio's own event loop, in the same run.

Two whole sets run side by side, as ``neuraxis up`` starts them, each answering by itself without a language model; they
differ in ``runtime.event_loop`` alone. Requests come to one of them at a time, at a fixed rate; the sides take turns,
and the median round counts. It prints the time of an answer, and the processor time of an exchange, by process. Run it
with ``python -m bench.system.event_loops [ROUNDS]``.
"""

import asyncio
import contextlib
import statistics
import sys
from collections import defaultdict
from collections.abc import Sequence

from bench.harness.processes import used_by_set
from bench.harness.table import Row, in_turns, percentile_rows, rows_of, show
from bench.system.pass_through import SET_MODEL, Load, running_set

ROUNDS = 6
RATE = 5
"""Requests a second."""

STEADY_S = 6.0
"""Seconds of a round."""

LOOPS = {"uvloop": "auto", "asyncio": "asyncio"}
"""Side -> its setting of ``runtime.event_loop``."""

_WARM_UP_S = 4.0


async def _run(rounds: int) -> list[Row]:
    took: dict[str, list[Sequence[float]]] = defaultdict(list)
    cpu_ms: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    async with contextlib.AsyncExitStack() as stack:
        runs, loads = {}, {}
        for side, setting in LOOPS.items():
            options = ("--set", f"runtime.event_loop={setting}")
            runs[side] = stack.enter_context(running_set("", options=options))
            loads[side] = await stack.enter_async_context(Load.open(runs[side].http, SET_MODEL))
        for load in loads.values():
            await load.steady(_WARM_UP_S, RATE)
        for side in in_turns(LOOPS, rounds):
            before = used_by_set(runs[side])
            samples = await loads[side].steady(STEADY_S, RATE)
            took[side].append(samples)
            for process, used in used_by_set(runs[side]).items():
                cpu_ms[process][side].append(used.since(before[process], len(samples)).cpu_us / 1e3)
    peers = {"uvloop": ("asyncio",)}
    rows = percentile_rows(took, peers, f"{RATE}/s")
    every: dict[str, float] = defaultdict(float)
    for process, found in cpu_ms.items():
        medians = {side: statistics.median(values) for side, values in found.items()}
        rows += rows_of(medians, peers, f"{RATE}/s, processor, {process}", "ms an exchange")
        for side, value in medians.items():
            every[side] += value
    return rows + rows_of(every, peers, f"{RATE}/s, processor, all of them", "ms an exchange")


def main() -> None:
    """Measure and print the rows; takes about a minute and a half."""
    show(asyncio.run(_run(int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS)))


if __name__ == "__main__":
    main()
