"""What ``make demo`` runs, in a process of its own and without a terminal."""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.e2e.live import environment


def demo(folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the demonstration with its temporary files in ``folder``."""
    return subprocess.run(
        [sys.executable, "-m", "deploy.demo"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        env=environment() | {"TMPDIR": str(folder)} | variables,
        check=False,
    )


def test_the_demo_shows_every_decision_explains_one_verifies_all_and_leaves_nothing() -> None:
    with tempfile.TemporaryDirectory() as folder:
        done = demo(Path(folder))
        assert done.returncode == 0, done.stdout + done.stderr
        assert list(Path(folder).iterdir()) == []
    told = done.stdout
    assert "14 exchanges ended, 0 bad" in told
    assert "jailbreak  " in told
    assert "developer mode”" in told
    assert re.search(r"verified: [1-9][0-9,]* decisions made again came out as recorded", told)
    assert "events equal" in told
    assert "every process ended in good order" in told


def test_a_demo_that_cannot_run_says_why() -> None:
    with tempfile.TemporaryDirectory() as folder:
        done = demo(Path(folder), NEURAXIS_BROKER__BINARY="/nowhere/nats-server")
    assert done.returncode == 1
    assert "demo failed: the set ended before it was ready" in done.stderr
    assert "nowhere/nats-server" in done.stderr
