"""A command at work while its broker is killed and comes back: one sentence when it goes, one when it is back."""

import json
import select
import subprocess
from pathlib import Path

from tests.broker import Broker
from tests.deploy.waiting import until
from tests.e2e.live import TIMEOUT_S, Live, command, environment


def test_a_feed_that_outlives_its_broker_prints_outcomes_alone_and_two_sentences_on_stderr(tmp_path: Path) -> None:
    said = tmp_path / "feed.log"
    with Broker(tmp_path / "broker") as broker, said.open("wb") as stderr:
        live = Live(tmp_path, "--nats", broker.url)
        feed = subprocess.Popen(
            command("feed", "-", "--format", "jsonl", "--nats", broker.url),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            cwd=tmp_path,
            env=environment(),
        )
        try:
            assert feed.stdin is not None
            feed.stdin.write(b'{"text": "Hello there!", "id": "before"}\n')
            feed.stdin.flush()
            assert select.select([feed.stdout], [], [], TIMEOUT_S)[0], "the first outcome never came"
            broker.kill()
            until(lambda: "is gone" in said.read_text(), "the feed has noticed", 20.0)
            broker.start()
            out, _ = feed.communicate(b'{"text": "Hello again!", "id": "after"}\n', timeout=TIMEOUT_S)
        finally:
            feed.kill()
            feed.wait()
            live.stop()
    assert feed.returncode == 0, said.read_text()
    assert [json.loads(line)["id"] for line in out.splitlines()] == ["before", "after"]
    told = [line for line in said.read_text().splitlines() if "exchanges ended" not in line and ":" in line]
    assert [line for line in told if line.startswith("neuraxis: ")] == [
        f"neuraxis: the broker at {broker.url} is gone: waiting for it to come back",
        "neuraxis: the broker is back",
    ]
    assert "{" not in said.read_text()
