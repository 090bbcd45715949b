"""What a machine may use up: disk space, inodes, file descriptors, memory and a process's address space.

If less than :data:`SCARCE` is left, ``doctor`` warns, and so does an alert (see ``resource_watch``). If it is used up
(less than :data:`USED_UP`, or no inode), ``doctor`` fails, and a gateway is not ready: new requests then go to another
one, and this one is ready again once more is left.
"""

import errno
import os
import resource
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from deploy.health.findings import Finding, Verdict

SCARCE, USED_UP = 0.10, 0.02
"""Shares of the total: below the first the doctor warns, below the second a gateway is not ready."""

_PLURAL = ("inodes", "file descriptors")
_PROC = Path("/proc")
_CGROUP = Path("/sys/fs/cgroup")


class Remaining(msgspec.Struct, frozen=True):
    """How much of a resource is left: ``free`` of ``total``, in its own unit; ``whose``: of which process or disk."""

    what: str
    whose: str
    free: int
    total: int

    @property
    def share(self) -> float:
        """The share that is left; all of it where there is no limit."""
        return self.free / self.total if self.total > 0 else 1.0

    @property
    def is_used_up(self) -> bool:
        """Whether work fails for the lack of it, now or soon; a disk's last inodes serve as well as its first."""
        return not self.free if self.what == "inodes" and self.total > 0 else self.share < USED_UP


REMEDIES = {
    "disk": "make room: appends are refused on a full disk",
    "inodes": "delete files that nobody needs, or use a file system with more inodes: no new file can be made without",
    "file descriptors": "raise the limit (ulimit -n, LimitNOFILE=), or find what holds them open",
    "memory": "give it more memory, or fewer processes: the system ends what asks for more",
    "address space": "raise the limit (ulimit -v, LimitAS=): the process is given no more memory",
    "storage": (
        "raise the limit (an account's max_storage; broker.max_store_bytes of a set's own broker, or room on its disk, "
        "with a new start); while some is left, `neuraxis log trim` can remove old events"
    ),
}


def disk_left(folder: Path) -> Remaining | None:
    """Return the free bytes on a folder's disk; None if that is not known."""
    try:
        found = shutil.disk_usage(folder)
    except OSError:
        return None
    return Remaining("disk", f"the disk of {folder.name or folder}", found.free, found.total)


def inodes_left(folder: Path) -> Remaining | None:
    """Return how many files can still be made on a folder's disk; None if that is not known, or there is no limit."""
    try:
        found = os.statvfs(folder)
    except OSError:
        return None
    if not found.f_files:  # some file systems make them as they are needed
        return None
    return Remaining("inodes", f"the disk of {folder.name or folder}", found.f_favail, found.f_files)


def descriptors_left(pid: int | None = None, proc: Path = _PROC) -> Remaining | None:
    """Return how many files a process may still open (without ``pid``: this one); None if that is not known."""
    name = "self" if pid is None else str(pid)
    try:
        used = len(os.listdir(proc / name / "fd"))
        limit = _soft_limit((proc / name / "limits").read_text(), "Max open files")
    except (OSError, ValueError) as wrong:
        if pid is None and isinstance(wrong, OSError) and wrong.errno == errno.EMFILE:  # not even for looking
            return Remaining("file descriptors", "this process", 0, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
        return None
    if limit is None:
        return None
    return Remaining(
        "file descriptors", "this process" if pid is None else f"process {pid}", max(0, limit - used), limit
    )


def address_space_left(pid: int | None = None, proc: Path = _PROC) -> Remaining | None:
    """Return how many bytes of addresses a process may still map; None if there is no limit, or it is not known."""
    name = "self" if pid is None else str(pid)
    try:
        limit = _soft_limit((proc / name / "limits").read_text(), "Max address space")
        pages = int((proc / name / "statm").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return None
    if limit is None:
        return None
    free = max(0, limit - pages * os.sysconf("SC_PAGE_SIZE"))
    return Remaining("address space", "this process" if pid is None else f"process {pid}", free, limit)


def _soft_limit(limits: str, what: str) -> int | None:
    line = next((line for line in limits.splitlines() if line.startswith(what)), "")
    soft = line.removeprefix(what).split()[0] if line else "unlimited"
    return None if soft == "unlimited" else int(soft)


def memory_left(proc: Path = _PROC, cgroup: Path = _CGROUP) -> Remaining | None:
    """Return the free bytes of memory of the machine, or of a container or systemd unit: the smallest share."""
    limited = map(_limited_memory, _own_cgroups(proc, cgroup))
    found = [left for left in (_machine_memory(proc), *limited) if left is not None]
    return min(found, key=lambda left: left.share, default=None)


def _machine_memory(proc: Path) -> Remaining | None:
    try:
        rows = dict(line.split(":", 1) for line in (proc / "meminfo").read_text().splitlines() if ":" in line)
        free, total = (int(rows[name].split()[0]) * 1024 for name in ("MemAvailable", "MemTotal"))
    except (OSError, KeyError, ValueError, IndexError):
        return None
    return Remaining("memory", "this machine", free, total)


def _own_cgroups(proc: Path, cgroup: Path) -> tuple[Path, ...]:
    """Return the folders of this process's cgroups, each of which may have a limit: a unit, its slices, a container."""
    try:
        lines = (proc / "self" / "cgroup").read_text().splitlines()
    except (OSError, UnicodeDecodeError):
        return (cgroup,)
    own = next((Path(line.removeprefix("0::/")) for line in lines if line.startswith("0::/")), Path())
    return tuple(cgroup / each for each in (own, *own.parents))


def _limited_memory(cgroup: Path) -> Remaining | None:
    try:
        most = (cgroup / "memory.max").read_text().strip()
        used = int((cgroup / "memory.current").read_text())
        rows = dict(line.split(" ", 1) for line in (cgroup / "memory.stat").read_text().splitlines() if " " in line)
        # The kernel frees cached pages of files before it kills a process; the ledger's process reads large files.
        reclaimable = int(rows.get("inactive_file", "0")) + int(rows.get("active_file", "0"))
    except (OSError, ValueError):
        return None
    if most == "max":
        return None
    return Remaining("memory", "this container or unit", max(0, int(most) - used + reclaimable), int(most))


def storage_left(info: Mapping[str, Any], server_most: int = 0) -> Remaining | None:
    """Return what is left of the limit on storage of a broker's account, or else of an embedded broker; None: no limit.

    ``info`` is JetStream's answer about the account. ``server_most`` is how many bytes the embedded broker may store;
    0: the broker is another, or that is not known.
    """
    most, used = int(info.get("limits", {}).get("max_storage", -1)), int(info.get("storage", 0))
    whose = "the account at the broker"
    if most <= 0:
        most, whose = server_most, "the set's own broker"
    return Remaining("storage", whose, max(0, most - used), most) if most > 0 else None


def judge_left(what: str, remaining: Sequence[Remaining]) -> Finding:
    """Judge what is left of one resource, where least of it is left."""
    if not remaining:
        return Finding(what, Verdict.SKIP, "how much is left is not known here")
    worst = min(remaining, key=lambda left: left.share)
    seen = f"{worst.share:.0%} of the {what} of {worst.whose} {'are' if what in _PLURAL else 'is'} free"
    if worst.share >= SCARCE:
        return Finding(what, Verdict.OK, seen)
    verdict = Verdict.FAIL if worst.is_used_up else Verdict.WARN
    return Finding(what, verdict, seen, REMEDIES[what])


def examine_resources(folder: Path, pids: Sequence[int]) -> list[Finding]:
    """Judge inodes, file descriptors and memory for the set of a data folder and its processes.

    Also judge the address space of processes for which it is limited.
    """
    inodes, memory = inodes_left(folder), memory_left()
    descriptors = [left for pid in pids if (left := descriptors_left(pid)) is not None]
    addresses = [left for pid in pids if (left := address_space_left(pid)) is not None]
    return [
        judge_left("inodes", [inodes] if inodes is not None else []),
        judge_left("file descriptors", descriptors),
        judge_left("memory", [memory] if memory is not None else []),
        *([judge_left("address space", addresses)] if addresses else ()),
    ]


async def used_up() -> str:
    """Return in words what this process has used up; empty if enough of everything is left."""
    return used_up_text(
        [left for left in (descriptors_left(), memory_left(), address_space_left()) if left is not None]
    )


def used_up_text(remaining: Sequence[Remaining]) -> str:
    """Return a sentence on what is used up; empty if enough of everything is left."""
    scarce = [left for left in remaining if left.is_used_up]
    return ", ".join(f"next to no {left.what} left for {left.whose}: {REMEDIES[left.what]}" for left in scarce)
