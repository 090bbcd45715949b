"""A whole set on a disk that is really full: nothing hangs, readiness tells, and all goes on once there is room."""

import json
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.deploy.waiting import until
from tests.e2e.live import Live
from tests.full_disk import SmallDisk, small_disk

GIVEN_S = 5.0
ORDERS_S = 10.0
MACHINE_S = 4.0
"""A second above the time given, and what starting an interpreter takes on a busy machine."""


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallDisk]:
    with small_disk(tmp_path_factory.mktemp("small") / ".neuraxis", megabytes=96) as mounted:
        yield mounted


@pytest.fixture(scope="module")
def live(disk: SmallDisk) -> Iterator[Live]:
    """A set whose data folder is that disk."""
    running = Live(disk.folder.parent, "--set", "gateway.wait_s=3", "--http", "127.0.0.1:0")
    yield running
    running.stop()


def readiness(live: Live) -> tuple[int, dict[str, str]]:
    url = json.loads((live.data / "run.json").read_text())["http"]
    begun = time.monotonic()
    answer = httpx.get(f"{url}/readyz", timeout=10, trust_env=False)
    assert time.monotonic() - begun < 3.0
    return answer.status_code, answer.json()["checks"]


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

    # What is left of a file's last page still takes a few small events: from the first append that fails on, none.
    doubts = 0
    while not doubts:
        begun = time.monotonic()
        done = live.run("ask", "Hello " * 200, "--timeout", f"{GIVEN_S:g}", "--json", status=3)
        assert time.monotonic() - begun < GIVEN_S + MACHINE_S
        assert done.stdout == ""
        (line,) = done.stderr.splitlines()
        found = re.search(r"after (\d+\.\d) s", line)
        assert found, line
        assert GIVEN_S - 0.2 <= float(found[1]) <= GIVEN_S + 1
        if "may be stored" in line:
            assert "disk is full" in line
            assert "`neuraxis why " in line
            doubts += 1

    orders = (
        ("breaker", "reset", "before", "--by", "ann", "--why", "x"),
        ("guardrails", "override", "loop", "--fatigue", "--by", "ann", "--why", "x"),
        ("patterns", "import", "rules.yaml"),
    )
    begun = time.monotonic()
    with ThreadPoolExecutor(len(orders)) as pool:
        ends = list(pool.map(lambda order: live.run(*order, "--timeout", f"{ORDERS_S:g}", status=3), orders))
    assert time.monotonic() - begun < ORDERS_S + 2 * MACHINE_S  # they share the machine
    for done in ends:
        assert "it may be stored" in done.stderr, done.stderr
        assert "disk is full" in done.stderr, done.stderr

    url = json.loads((live.data / "run.json").read_text())["http"]
    begun = time.monotonic()
    loop = httpx.post(
        f"{url}/orchestrator/loop-complete",
        json={"loop_id": "l1", "reflection_status": "done", "orchestrator_persona": "SAGE", "override_fatigue": False,
              "override_max_reruns": False, "override_by": None},
        timeout=20, trust_env=False,
    )  # fmt: skip
    assert loop.status_code == 503, loop.text
    assert time.monotonic() - begun < 3.0 + 1.0
    assert "storing" in live.run("doctor", status=1).stdout

    disk.clear()
    until(lambda: readiness(live)[0] == 200, "the set is ready again")
    assert live.ask("Thanks!", "--session", "after")["action"] == "EXECUTED"
