"""The processor time, wake-ups and memory of the processes of a set, as the kernel counts them."""

import os
from pathlib import Path

import msgspec

from deploy.processes.running_set import RunFile


class Used(msgspec.Struct, frozen=True):
    """What a process has used: microseconds of processor time, and how often it was woken."""

    cpu_us: float
    woken: float

    def since(self, before: "Used", count: int) -> "Used":
        """Return what was used since ``before``, divided by ``count``."""
        return Used((self.cpu_us - before.cpu_us) / count, (self.woken - before.woken) / count)


def used_by(pid: int) -> Used:
    """Return what a process has used so far, all its threads together."""
    ns = woken = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        ns += int((task / "schedstat").read_text().split()[0])
        status = (task / "status").read_text()
        woken += int(status.partition("\nvoluntary_ctxt_switches:")[2].split("\n")[0])
    return Used(ns / 1e3, woken)


def used_by_set(run: RunFile) -> dict[str, Used]:
    """Return what each process of a running set has used so far, by name."""
    return {status.name: used_by(status.pid) for status in run.processes if status.pid}


def resident_mb_by_process(run: RunFile) -> dict[str, float]:
    """Return the megabytes that each process of a set has in memory, by name; ``up`` is the one that started them."""
    pids = {"up": run.pid} | {status.name: status.pid for status in run.processes if status.pid}
    return {name: _resident_mb(pid) for name, pid in pids.items()}


def _resident_mb(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6
