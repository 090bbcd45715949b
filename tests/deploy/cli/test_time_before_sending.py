"""The time that a command is given counts for all it does before it sends something: reading, and loading itself."""

import os
import subprocess
import sys
import time
from pathlib import Path

from tests.deploy.waiting import run_side_by_side
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


def test_a_pipe_that_stays_open_costs_a_command_no_more_than_its_time(tmp_path: Path) -> None:
    held, end = os.pipe()
    try:
        begun = time.monotonic()
        given = [command(*order, *NOWHERE) for order in READING]
        ended = run_side_by_side(given, stdin=held, cwd=tmp_path, env=environment(), timeout=HANGS_S)
        assert time.monotonic() - begun >= GIVEN_S
    finally:
        os.close(held)
        os.close(end)
    for order, done in zip(READING, ended, strict=True):
        assert (done.returncode, done.stdout) == (2, ""), order
        assert done.stderr.splitlines() == [
            "neuraxis: stdin has not ended within 2 s: nothing was sent; let it end sooner, or give a longer --timeout"
        ], order


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
        if name == sys.argv[1]:
            print("loaded by", threading.current_thread().name, file=sys.stderr)
sys.meta_path.insert(0, Recorder())
from deploy.cli import main
main(sys.argv[2:])
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


def test_no_command_loads_the_actors_where_its_time_cannot_end_it(tmp_path: Path) -> None:
    given = [[sys.executable, "-c", LOADING, "actors.registry", *order, *NOWHERE] for order in SENDING]
    for order, done in zip(SENDING, run_side_by_side(given, cwd=tmp_path, timeout=HANGS_S), strict=True):
        assert done.returncode == 3, (order, done.stderr)
        assert "loaded by MainThread" not in done.stderr, order


def test_options_are_read_without_the_client_that_sends_orders(tmp_path: Path) -> None:
    orders = [("forget", "--session", "s", *by) for by in ((), ("--by", "ann"))]  # without --why: read, then refused
    given = [[sys.executable, "-c", LOADING, "deploy.operating.order_client", *order] for order in orders]
    for order, done in zip(orders, run_side_by_side(given, cwd=tmp_path, timeout=HANGS_S), strict=True):
        assert (done.returncode, "Missing option '--why'" in done.stderr) == (2, True), (order, done.stderr)
        assert "loaded by" not in done.stderr, order
