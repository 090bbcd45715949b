"""A whole set on a disk that is really full: nothing hangs, readiness tells, and all goes on once there is room."""

import json
import os
import re
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from neuraxis_server.probe import why_not
from tests.deploy.waiting import is_gone, until
from tests.e2e.live import Live
from tests.full_disk import SmallDisk, small_disk

GIVEN_S = 5.0
ORDERS_S = 10.0
HANGS_S = 60.0
"""What waits without a deadline, waits for longer: the disk is full for as long as the test wants."""


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallDisk]:
    with small_disk(tmp_path_factory.mktemp("small") / ".neuraxis", megabytes=96) as mounted:
        yield mounted


@pytest.fixture(scope="module")
def live(disk: SmallDisk) -> Iterator[Live]:
    """A set whose data folder is that disk."""
    health = ("--set", f"runtime.health_file={disk.folder / 'health.json'}")
    running = Live(disk.folder.parent, "--set", "gateway.wait_s=3", "--http", "127.0.0.1:0", *health)
    yield running
    running.stop()


def pids(live: Live) -> dict[str, int]:
    """Return what the set says of its programs: name -> process id."""
    return {each["name"]: each["pid"] for each in json.loads((live.data / "run.json").read_text())["processes"]}


def is_alive(pid: int) -> bool:
    return pid > 0 and not is_gone(pid)


def kill(live: Live, program: str) -> None:
    os.kill(pids(live)[program], signal.SIGKILL)


def readiness(live: Live) -> tuple[int, dict[str, str]]:
    url = json.loads((live.data / "run.json").read_text())["http"]
    try:
        answer = httpx.get(f"{url}/readyz", timeout=HANGS_S, trust_env=False)
    except httpx.TransportError:  # its process was killed
        return 0, {}
    return answer.status_code, answer.json()["checks"]


def probed(disk: SmallDisk, what: str) -> str:
    """Return what an orchestrator's probe says against the set, whose health file is on that disk."""
    return why_not(str(disk.folder / "health.json"), what, time.monotonic())


def test_a_full_disk_is_told_within_the_time_given_and_left_behind_once_there_is_room(
    live: Live, disk: SmallDisk
) -> None:
    (live.folder / "rules.yaml").write_text(
        "- {name: vault, action: BLOCK, confidence: 0.9, signatures: [open the vault]}\n"
    )
    live.ask("Hello", "--session", "before")
    until(lambda: readiness(live)[0] == 200, "the set is ready")

    disk.fill()
    status, checks = readiness(live)
    assert status == 503, checks
    assert "disk is full" in checks["storing"]
    assert "disk is full" in checks["ledger"]
    until(lambda: "disk is full" in probed(disk, "ready"), "a probe is told, too")

    # A program that dies now is started again, and the set stays, although it cannot write who runs.
    kill(live, "gateway")
    until(lambda: readiness(live)[0] == 503, "the gateway is back")

    # What is left of a file's last page still takes a few small events: from the first append that fails on, none.
    doubts = 0
    while not doubts:
        done = live.run("ask", "Hello " * 200, "--timeout", f"{GIVEN_S:g}", "--json", status=3)
        assert done.stdout == ""
        (line,) = done.stderr.splitlines()
        found = re.search(r"after (\d+\.\d) s", line)
        assert found, line
        assert float(found[1]) >= GIVEN_S - 0.2
        if "may be stored" in line:
            assert "disk is full" in line
            assert "`neuraxis why " in line
            doubts += 1

    orders = (
        ("breaker", "reset", "before", "--by", "ann", "--why", "x"),
        ("guardrails", "override", "loop", "--fatigue", "--by", "ann", "--why", "x"),
        ("patterns", "import", "rules.yaml"),
    )
    with ThreadPoolExecutor(len(orders)) as pool:
        ends = list(pool.map(lambda order: live.run(*order, "--timeout", f"{ORDERS_S:g}", status=3), orders))
    for done in ends:
        assert "it may be stored" in done.stderr, done.stderr
        assert "disk is full" in done.stderr, done.stderr

    url = json.loads((live.data / "run.json").read_text())["http"]
    loop = httpx.post(
        f"{url}/orchestrator/loop-complete",
        json={"loop_id": "l1", "reflection_status": "done", "orchestrator_persona": "SAGE", "override_fatigue": False,
              "override_max_reruns": False, "override_by": None},
        timeout=HANGS_S, trust_env=False,
    )  # fmt: skip
    assert loop.status_code == 503, loop.text
    assert "storing" in live.run("doctor", status=1).stdout

    assert live.process.poll() is None, live.output.read_text()
    assert probed(disk, "live") == "", "it would be started again for ever"
    disk.clear()
    until(lambda: readiness(live)[0] == 200, "the set is ready again")
    until(lambda: probed(disk, "ready") == "", "a probe is told that, too")
    until(lambda: all(is_alive(pid) for pid in pids(live).values()), "what runs is told as it is")
    assert live.ask("Thanks!", "--session", "after")["action"] == "EXECUTED"
