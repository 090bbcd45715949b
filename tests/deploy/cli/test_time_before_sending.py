"""The time that a command is given counts for all it does before it sends something: reading, and loading itself."""

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.e2e.live import command, environment

GIVEN_S, HANGS_S = 2.0, 90.0
NOWHERE = ("--nats", "nats://127.0.0.1:1", "--timeout", f"{GIVEN_S:g}")

READING = (
    ("ask", "-"),
    ("ask", "-", "--check"),
    ("patterns", "import", "-", "--name", "rules"),
    ("precedents", "import", "-"),
    ("allowances", "add", "button", "--file", "-", "--why", "x"),
)


@pytest.mark.parametrize("order", READING, ids="-".join)
def test_a_pipe_that_stays_open_costs_a_command_no_more_than_its_time(order: Sequence[str], tmp_path: Path) -> None:
    held, end = os.pipe()
    try:
        begun = time.monotonic()
        done = subprocess.run(
            command(*order, *NOWHERE), stdin=held, capture_output=True, text=True, cwd=tmp_path, env=environment(),
            timeout=HANGS_S, check=False,
        )  # fmt: skip
        assert time.monotonic() - begun >= GIVEN_S
    finally:
        os.close(held)
        os.close(end)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [
        "neuraxis: stdin has not ended within 2 s: nothing was sent; let it end sooner, or give a longer --timeout"
    ]


def test_a_file_that_never_ends_is_named(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "rules.yaml")
    done = subprocess.run(
        command("patterns", "import", "rules.yaml", *NOWHERE), capture_output=True, text=True, cwd=tmp_path,
        env=environment(), timeout=HANGS_S, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "rules.yaml has not ended within 2 s" in done.stderr


LOADING = """
import sys, threading
class Recorder:
    def find_spec(self, name, path=None, target=None):
        if name == "actors.registry":
            print("loaded by", threading.current_thread().name, file=sys.stderr)
sys.meta_path.insert(0, Recorder())
from deploy.cli import main
main(sys.argv[1:])
"""
"""All actors take most of a second to load, on a busy machine most of ten."""

SENDING = (
    ("ask", "Hello"),
    ("rerun", "last"),
    ("forget", "--session", "s", "--why", "x"),
    ("forget", "--fact", "f", "--why", "x", "--yes"),
    ("patterns", "withdraw", "rules", "--why", "x"),
    ("precedents", "withdraw", "p", "--why", "x"),
    ("precedents", "judge", "last", "harm", "--why", "x"),
    ("allowances", "add", "button", "--phrase", "ignore previous", "--why", "x"),
    ("allowances", "withdraw", "button", "--why", "x"),
    ("breaker", "reset", "s", "--by", "ann", "--why", "x"),
    ("breaker", "recover", "s", "--by", "ann", "--why", "x"),
    ("guardrails", "override", "l", "--fatigue", "--by", "ann", "--why", "x"),
)


@pytest.mark.parametrize("order", SENDING, ids=lambda order: "-".join(order[:2]))
def test_no_command_loads_the_actors_where_its_time_cannot_end_it(order: Sequence[str], tmp_path: Path) -> None:
    given = [sys.executable, "-c", LOADING, *order, *NOWHERE]
    done = subprocess.run(given, capture_output=True, text=True, cwd=tmp_path, timeout=HANGS_S, check=False)
    assert done.returncode == 3, done.stderr
    assert "loaded by MainThread" not in done.stderr
