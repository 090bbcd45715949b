"""Inodes, file descriptors and memory: each is told before it is used up, and a gateway that has none is not ready."""

import os
from pathlib import Path

from deploy.health.findings import Verdict
from deploy.health.resources import (
    Remaining,
    descriptors_left,
    examine_resources,
    inodes_left,
    judge_left,
    memory_left,
    used_up_text,
)

LIMITS = "Limit  Soft Limit  Hard Limit  Units\nMax open files            {}  1048576  files\n"


def test_what_gets_scarce_is_told_with_a_remedy_and_what_is_used_up_fails() -> None:
    for what in ("inodes", "file descriptors", "memory"):
        for free, verdict in ((50, Verdict.OK), (9, Verdict.WARN), (0, Verdict.FAIL)):
            found = judge_left(
                what, [Remaining(what, "this machine", 90, 100), Remaining(what, "this process", free, 100)]
            )
            assert (found.check, found.verdict) == (what, verdict)
            assert bool(found.remedy) == (verdict is not Verdict.OK)
    # A gateway with its last descriptors is not ready, and doctor agrees; a disk's last inode is as good as any.
    assert judge_left("file descriptors", [Remaining("file descriptors", "process 7", 1, 100)]).verdict is Verdict.FAIL
    assert judge_left("inodes", [Remaining("inodes", "the disk of data", 1, 100)]).verdict is Verdict.WARN
    assert judge_left("inodes", []).verdict is Verdict.SKIP


def test_a_gateway_is_not_ready_only_once_next_to_nothing_is_left() -> None:
    scarce, gone = Remaining("memory", "this machine", 5, 100), Remaining("file descriptors", "this process", 1, 1024)
    assert used_up_text([scarce]) == ""
    assert used_up_text([scarce, gone]).startswith("next to no file descriptors left for this process: raise the limit")


def test_open_files_are_counted_against_the_soft_limit(tmp_path: Path) -> None:
    (tmp_path / "7" / "fd").mkdir(parents=True)
    for name in range(6):
        (tmp_path / "7" / "fd" / str(name)).touch()
    (tmp_path / "7" / "limits").write_text(LIMITS.format("16"))
    assert descriptors_left(7, tmp_path) == Remaining("file descriptors", "process 7", 10, 16)
    (tmp_path / "7" / "limits").write_text(LIMITS.format("unlimited"))
    assert descriptors_left(7, tmp_path) is None
    assert descriptors_left(8, tmp_path) is None


def test_more_open_files_leave_less() -> None:
    before = descriptors_left()
    assert before is not None
    held = [os.open(os.devnull, os.O_RDONLY) for _ in range(20)]
    try:
        after = descriptors_left()
    finally:
        for descriptor in held:
            os.close(descriptor)
    assert after is not None
    assert (before.free - after.free, before.total) == (20, after.total)


def test_memory_is_that_of_the_container_where_it_is_the_shorter(tmp_path: Path) -> None:
    (tmp_path / "meminfo").write_text("MemTotal: 1000 kB\nMemFree: 1 kB\nMemAvailable: 600 kB\n")
    machine = Remaining("memory", "this machine", 600 * 1024, 1000 * 1024)
    assert memory_left(tmp_path, tmp_path / "none") == machine
    (tmp_path / "memory.max").write_text("1000\n")
    (tmp_path / "memory.current").write_text("980\n")
    (tmp_path / "memory.stat").write_text("anon 900\nactive_file 10\ninactive_file 20\n")
    assert memory_left(tmp_path, tmp_path) == Remaining("memory", "this container or unit", 50, 1000)
    (tmp_path / "memory.max").write_text("max\n")
    assert memory_left(tmp_path, tmp_path) == machine


def test_the_memory_of_a_systemd_unit_is_that_of_its_own_cgroup(tmp_path: Path) -> None:
    """`neuraxis deploy systemd` limits each unit (MemoryMax), and the system ends what goes beyond."""
    unit = tmp_path / "cgroup" / "system.slice" / "neuraxis.service"
    unit.mkdir(parents=True)
    for name, content in (("max", "1000"), ("current", "990"), ("stat", "inactive_file 0")):
        (unit / f"memory.{name}").write_text(f"{content}\n")
    (tmp_path / "self").mkdir()
    for told in ("0::/system.slice/neuraxis.service\n", "4:memory:/x\n0::/system.slice/neuraxis.service\n"):
        (tmp_path / "self" / "cgroup").write_text(told)
        left = memory_left(tmp_path, tmp_path / "cgroup")
        assert left == Remaining("memory", "this container or unit", 10, 1000)
    # A process in a group of its own within a container, or a unit in a slice with a limit: that limit ends it, too.
    (unit / "memory.max").write_text("max\n")
    for name, content in (("max", "2000"), ("current", "1900"), ("stat", "inactive_file 0")):
        (unit.parent / f"memory.{name}").write_text(f"{content}\n")
    assert memory_left(tmp_path, tmp_path / "cgroup") == Remaining("memory", "this container or unit", 100, 2000)
    (tmp_path / "self" / "cgroup").write_text("0::/not/shown/in/this/container\n")
    assert memory_left(tmp_path, tmp_path / "cgroup") is None


def test_this_machine_is_looked_at(tmp_path: Path) -> None:
    found = {each.check for each in examine_resources(tmp_path, [os.getpid(), 2**22 + 1])}
    assert found == {"inodes", "file descriptors", "memory"}
    assert inodes_left(tmp_path / "nowhere") is None
