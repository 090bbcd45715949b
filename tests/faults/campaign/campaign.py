"""Runs a campaign: measures what the set takes, hurts it under half of that, lets it rest, and judges its log."""

import asyncio
import shutil
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from tests.faults.campaign.load import MixedLoad, greatest_rate, until_one_succeeds
from tests.faults.campaign.places import Place
from tests.faults.campaign.schedule import GAP_S, Fault, Gap, schedule
from tests.faults.campaign.takeovers import Takeovers, quantiles
from tests.faults.rig import judged, waited
from tests.judging import Verdict

REST_S = 900.0
"""Seconds in which a set that is left in peace has to be whole again, and every exchange to have its end."""
BEGINS_S = 60.0
"""Seconds that one fault may take to begin or to end, while others hold what it needs."""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """How a campaign ended: rates are exchanges a second, takeovers and pauses seconds.

    Attributes:
        most: The greatest rate, measured on the unhurt set in the same run; 0 where it was not.
        rate: The rate at which inputs arrived.
        takeovers: From each fault of a worker to a new leader, for every partition that the worker led.
        pauses: From each fault of broker, network or disk to the next input that was accepted.
        leaderless: Partitions without a leader at the end; there should be none.
    """

    verdict: Verdict
    faults: Sequence[Fault]
    most: float
    rate: float
    refused: int
    in_doubt: int
    takeovers: Sequence[float]
    pauses: Sequence[float]
    leaderless: Sequence[str]

    def lines(self) -> list[str]:
        """Return the report as people read it."""
        done = Counter(f"{fault.kind} {fault.target}" for fault in self.faults)
        return [
            f"{len(self.faults)} faults: {', '.join(f'{count} x {name}' for name, count in sorted(done.items()))}",
            f"greatest rate {self.most:.1f} exchanges/s, inputs at {self.rate:.1f}/s;"
            f" {self.refused} refused, {self.in_doubt} in doubt",
            self.verdict.summary(),
            *self.verdict.broken,
            f"takeovers of partitions: {quantiles(self.takeovers)}",
            f"pauses of acceptance after faults of broker, network or disk: {quantiles(self.pauses)}",
        ]


async def campaign(
    place: Place,
    *,
    seed: int,
    seconds: float,
    measured_s: float = 0.0,
    rate: float = 0.0,
    gap_s: Gap = GAP_S,
    say: Callable[[str], None] = print,
) -> Report:
    """Run a campaign of ``seconds`` on a set that is ready, and judge it.

    Inputs arrive at ``rate`` a second, or, where that is 0, at half of the rate that the set takes for ``measured_s``.

    Raises:
        AssertionError: the set is not whole again in time, or a program cannot be hurt.
    """
    faults = schedule(seed, seconds, place.targets, gap_s)
    say(f"seed {seed}, {seconds:g} s, {len(faults)} faults:")
    for fault in faults:
        say(str(fault))
    accepted: list[str] = []
    takeovers = Takeovers()
    async with place.log() as log:
        most = 0.0 if rate else await greatest_rate(log, measured_s, accepted)
        load, stop = MixedLoad(rate or max(1.0, most / 2), _http(place)), asyncio.Event()
        say(f"greatest rate {most:.1f}/s; inputs at {load.rate:.1f}/s")
        watching = asyncio.create_task(takeovers.watch(log))
        loading = asyncio.create_task(load.run(log, stop))
        try:
            hurt_at = await _hurt(place, faults, takeovers)
        finally:
            stop.set()
            await loading
        say(f"left in peace: {len(load.accepted)} accepted, {load.refused} refused, {load.in_doubt} in doubt")
        accepted += load.accepted
        await asyncio.to_thread(waited, place.running.ready, "the set to be whole again", REST_S)
        accepted += await until_one_succeeds(log, REST_S)
        _, verdict = await judged(log, place.running.data.ledger, accepted, REST_S)
        watching.cancel()
        if verdict.broken:
            say(f"its ledger is kept in {await asyncio.to_thread(_kept_ledger, place)}")
    pauses = [load.pause_after(at) for fault, at in hurt_at if place.stops_appends(fault)]
    report = Report(
        verdict=verdict,
        faults=faults,
        most=most,
        rate=load.rate,
        refused=load.refused,
        in_doubt=load.in_doubt,
        takeovers=takeovers.times,
        pauses=[pause for pause in pauses if pause is not None],
        leaderless=takeovers.leaderless,
    )
    for line in report.lines():
        say(line)
    return report


def _kept_ledger(place: Place) -> Path:
    """Copy the ledger of a set at rest to where it outlives the set's disk; return the copy's folder."""
    ledger = place.running.data.ledger
    folder = place.running.said.parent / "kept"
    folder.mkdir()
    for file in ledger.parent.glob(f"{ledger.name}*"):
        shutil.copy2(file, folder)
    return folder


def _http(place: Place) -> str:
    run = place.running.run_file()
    assert run is not None
    return run.http


async def _hurt(place: Place, faults: Sequence[Fault], takeovers: Takeovers) -> list[tuple[Fault, float]]:
    """Do what the schedule says, each fault by itself; return when each really began, in monotonic seconds."""
    begun = time.monotonic()
    hurt_at: list[tuple[Fault, float]] = []

    async def one(fault: Fault) -> None:
        await asyncio.sleep(max(0.0, begun + fault.at_s - time.monotonic()))
        async with asyncio.timeout(BEGINS_S):
            hurt = await place.begin(fault)
        now = time.monotonic()
        hurt_at.append((fault, now))
        takeovers.began(hurt, now)
        await asyncio.sleep(fault.lasts_s)
        async with asyncio.timeout(BEGINS_S):
            await place.end(fault)

    async with asyncio.TaskGroup() as tasks:
        for fault in faults:
            tasks.create_task(one(fault), name=str(fault))
    return hurt_at
