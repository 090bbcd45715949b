"""A worker process by itself, against a real broker."""

import asyncio
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from actors.runtime.committer import Group
from deploy.lifeline import READY
from deploy.worker import UnknownWork, check_work, known_work, replier
from events.jetstream import Access, Connection, JetStreamLog
from schemas.subjects import Partitions
from tests.broker import Broker

ALIVE_S = 60.0


@contextmanager
def worker(broker: Broker, folder: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], socket.socket]]:
    """Start a worker on a lifeline; yields the process and our end."""
    ours, theirs = socket.socketpair()
    process = subprocess.Popen(
        [sys.executable, "-m", "deploy.cli", "worker", *arguments, "--nats", broker.url, "--data", str(folder)]
        + ["--lifeline", str(theirs.fileno())],
        pass_fds=(theirs.fileno(),),
        stderr=subprocess.PIPE,
        text=True,
    )
    theirs.close()
    ours.settimeout(ALIVE_S)
    try:
        yield process, ours
    finally:
        ours.close()
        process.kill()
        process.communicate()


def test_a_worker_says_when_it_serves_and_ends_cleanly_when_asked(broker: Broker, tmp_path: Path) -> None:
    with worker(broker, tmp_path, "clock", "router") as (process, line):
        assert line.recv(64) == READY
        process.send_signal(signal.SIGTERM)
        assert process.wait(ALIVE_S) == 0


def test_a_worker_ends_by_itself_when_its_supervisor_is_gone(broker: Broker, tmp_path: Path) -> None:
    with worker(broker, tmp_path, "ledger") as (process, line):
        assert line.recv(64) == READY
        line.close()
        assert process.wait(ALIVE_S) == 0
        assert (tmp_path / "ledger.db").exists()


def test_a_worker_refuses_a_stream_of_other_partitions_in_one_line(broker: Broker, tmp_path: Path) -> None:
    async def make_a_stream() -> None:
        log = await JetStreamLog.connect(broker.url, partitions=Partitions(2, 8))
        await log.close()

    asyncio.run(make_a_stream())
    with worker(broker, tmp_path, "clock") as (process, _):
        _, said = process.communicate(timeout=ALIVE_S)
    assert process.returncode == 2
    assert "was made with 2 agent and 8 session partitions, but 4 and 16 are configured" in said.splitlines()[-1]


def test_a_worker_that_stands_by_itself_does_not_end_without_a_supervisor(broker: Broker, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "deploy.cli", "worker", "ledger", "--nats", broker.url, "--data", str(tmp_path)],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    try:
        assert any("worker_ready" in line for line in process.stderr)
        assert process.poll() is None
    finally:
        process.terminate()
        _, rest = process.communicate(timeout=ALIVE_S)
    assert process.returncode == 0, rest


def test_the_readiness_of_a_worker_reaches_systemd(broker: Broker, tmp_path: Path) -> None:
    address = f"\0neuraxis-test-{tmp_path.name}-{broker.pid}"
    if sys.platform != "linux":
        pytest.skip("abstract socket addresses exist on Linux alone")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(address)
        manager.settimeout(ALIVE_S)
        process = subprocess.Popen(
            [sys.executable, "-m", "deploy.cli", "worker", "ledger", "--nats", broker.url, "--data", str(tmp_path)],
            env={"NOTIFY_SOCKET": f"@{address[1:]}"},
            stderr=subprocess.DEVNULL,
        )
        try:
            assert manager.recv(64) == b"READY=1"
        finally:
            process.terminate()
            process.wait(ALIVE_S)


def test_work_is_named_once_and_by_known_names() -> None:
    assert check_work(("router", "ledger", "router")) == ("router", "ledger")
    assert set(known_work()) >= {"clock", "reflex", "responder", "router", "ledger"}
    with pytest.raises(UnknownWork, match="there is no actor 'legder': did you mean 'ledger'"):
        check_work(("legder",))
