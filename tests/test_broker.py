"""The broker fixture itself: what the fault tests rely on."""

import signal
import socket
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.broker import DEADLINE_S, Broker, wait_until
from tests.deploy.waiting import is_gone


def answers(broker: Broker, patience_s: float = DEADLINE_S) -> bool:
    """Whether the broker greets a new connection."""
    address = urlsplit(broker.url)
    try:
        with socket.create_connection((address.hostname, address.port), timeout=patience_s) as connection:
            return connection.recv(4) == b"INFO"
    except OSError:
        return False


def test_it_runs_and_greets(broker: Broker) -> None:
    assert answers(broker)


def test_killed_and_started_again_it_keeps_its_address(broker: Broker) -> None:
    url, pid = broker.url, broker.pid
    broker.kill()
    assert not answers(broker)
    broker.start()
    assert (broker.url, answers(broker)) == (url, True)
    assert broker.pid != pid


def test_paused_it_is_silent_and_resumed_it_answers(broker: Broker) -> None:
    broker.pause()
    assert not answers(broker, patience_s=0.5)
    broker.resume()
    assert answers(broker)


def test_two_brokers_run_side_by_side(broker: Broker, tmp_path: Path) -> None:
    with Broker(tmp_path / "other") as other:
        assert other.url != broker.url
        assert answers(other)
        assert answers(broker)


def test_a_bad_configuration_is_told_with_the_servers_own_words(tmp_path: Path) -> None:
    broker = Broker(tmp_path, more="jetstream_of_nonsense: {")
    with pytest.raises(RuntimeError, match="nats-server ended at once"):
        broker.start()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux kills a child with its parent")
def test_it_dies_with_the_process_that_started_it(tmp_path: Path) -> None:
    script = (
        "import sys, pathlib; from tests.broker import Broker; broker = Broker(pathlib.Path(sys.argv[1]));"
        "broker.start(); print(broker.pid, flush=True); sys.stdin.read()"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[1],
    )
    with parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert not is_gone(pid)
        parent.send_signal(signal.SIGKILL)
    wait_until(lambda: is_gone(pid), "the orphaned nats-server to die")
