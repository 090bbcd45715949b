"""What ``make demo`` runs, in a process of its own and without a terminal."""

import re
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import httpx
import pytest

from tests.e2e.live import environment

ROOT = Path(__file__).resolve().parent.parent.parent


FOREIGN = {
    "NEURAXIS_BROKER__URL": "nats://127.0.0.1:1",
    "NEURAXIS_WEBHOOK__RECEIVERS__OPS__STYLE": "slack",
    "NEURAXIS_WEBHOOK__RECEIVERS__OPS__URL_ENV": "OPS_WEBHOOK",
}
"""Variables of somebody who uses a broker, where the demonstration's conversations would be in their log, and who has
alerts sent, so that it would page them."""


@pytest.fixture
def working(tmp_path: Path) -> Path:
    """A folder whose configuration says the same."""
    folder = tmp_path / "working"
    folder.mkdir()
    (folder / "neuraxis.toml").write_text(
        '[broker]\nurl = "nats://127.0.0.1:1"\n[webhook.receivers.ops]\nstyle = "slack"\nurl_env = "OPS_WEBHOOK"\n'
    )
    return folder


def demo(folder: Path, working: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the demonstration with its temporary files in ``folder``."""
    return subprocess.run(
        [sys.executable, "-m", "deploy.demo"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        cwd=working,
        env=environment() | {"TMPDIR": str(folder), "PYTHONPATH": str(ROOT)} | variables,
        check=False,
    )


def test_the_demo_shows_every_decision_explains_one_verifies_all_and_leaves_nothing(working: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        done = demo(Path(folder), working, **FOREIGN)
        assert done.returncode == 0, done.stdout + done.stderr
        assert list(Path(folder).iterdir()) == []
    told = done.stdout
    assert "14 exchanges ended, 0 bad" in told
    assert "jailbreak  " in told
    assert "developer mode”" in told
    assert re.search(r"verified: [1-9][0-9,]* decisions made again came out as recorded", told)
    assert "events equal" in told
    assert "every process ended in good order" in told
    assert "http://127.0.0.1:8642/dashboard" in told


def test_a_demo_keeps_to_itself_and_shows_its_dashboard_until_it_is_told_to_stop(working: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        # Its own port: another set on this machine may take the default one as soon as this one has ended.
        given = environment() | {
            "TMPDIR": folder,
            "PYTHONPATH": str(ROOT),
            **FOREIGN,
            "NEURAXIS_GATEWAY__HTTP": "127.0.0.1:0",
            "PYTHONIOENCODING": "ascii",
        }
        command = [sys.executable, "-m", "deploy.demo", "--keep"]
        with subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, cwd=working, env=given
        ) as process:
            assert process.stdout is not None
            killing = threading.Timer(120, process.kill)
            killing.start()
            try:
                told = list[str]()
                for line in process.stdout:
                    told.append(line.strip())
                    if told[-1].endswith("/dashboard"):
                        break
                address = told[-1]
                assert "Neuraxis dashboard" in httpx.get(address, timeout=60, trust_env=False).text
                process.send_signal(signal.SIGTERM)
                process.stdout.read()
                assert process.wait(60) == 128 + signal.SIGTERM
            finally:
                killing.cancel()
                process.kill()
        assert any("14 exchanges ended, 0 bad" in line for line in told)
        assert list(Path(folder).iterdir()) == []
        with pytest.raises(httpx.ConnectError):
            httpx.get(address, timeout=60, trust_env=False)


def test_a_demo_that_cannot_run_says_why(working: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        done = demo(Path(folder), working, NEURAXIS_BROKER__BINARY="/nowhere/nats-server")
    assert done.returncode == 1
    assert "demo failed: the set ended before it was ready" in done.stderr
    assert "nowhere/nats-server" in done.stderr
