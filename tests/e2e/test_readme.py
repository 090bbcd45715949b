"""What README tells people to type works as it stands."""

import asyncio
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from deploy.config.loading import all_sections, resolve
from events.jetstream import JetStreamLog
from tests.broker import Broker
from tests.deploy.waiting import until
from tests.e2e.live import Live, environment
from tests.e2e.test_examining import PATH
from tests.e2e.test_exchanges import fresh

ROOT = Path(__file__).resolve().parent.parent.parent
README = (ROOT / "README.md").read_text()


def blocks(language: str, page: str = README) -> list[str]:
    """Return the code blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


def test_the_commands_of_the_readme_run_as_they_are_written(live: Live, tmp_path: Path) -> None:
    """In a shell that knows nothing of the environment, from the block that activates it on, in one folder."""
    for name, place in ((".venv", Path(sys.prefix)), ("deploy", ROOT / "deploy"), (".neuraxis", live.data)):
        (tmp_path / name).symlink_to(place)
    script = "\n".join(block for block in blocks("sh") if "make " not in block)
    assert script.startswith(". .venv/bin/activate")
    elsewhere = [part for part in os.environ["PATH"].split(os.pathsep) if not (Path(part) / "neuraxis").exists()]
    done = subprocess.run(
        ["sh", "-eu", "-c", script],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        cwd=tmp_path,
        env={**environment(), "PATH": os.pathsep.join(elsewhere)},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for part in ("Answered by the composer", "Refused: it has the phrase", "verified: ", "check ", "| Subject"):
        assert part in done.stdout


def test_every_make_target_of_the_readme_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    used = set(re.findall(r"make ([a-z-]+)", README))
    assert used
    assert used <= targets


def test_the_configuration_of_the_readme_is_one() -> None:
    import tomllib

    from deploy.config.loading import Layer

    (text,) = blocks("toml")
    config = resolve(all_sections(), [Layer("README.md", tomllib.loads(text))])
    assert config.runtime.processes == 2


def test_the_subscriber_of_the_readme_hears_every_event_on_its_literal_subject(live: Live) -> None:
    (script,) = [block for block in blocks("python") if "nats" in block]
    heard = live.folder / "heard.txt"
    with heard.open("wb") as output:
        listening = subprocess.Popen(
            [sys.executable, "-c", script], stdout=output, stderr=output, cwd=live.folder, env=environment()
        )
    try:
        # A core subscription hears what comes after it: ask until the first is heard, then judge a whole exchange.
        until(lambda: live.ask("Anybody there?")["exchange"] in heard.read_text(), "the subscriber listens")
        # An agent that is new here: its first answer leads to an event of no exchange too.
        exchange = live.ask("What is the capital of Peru?", "--agent", fresh("new"))["exchange"]
        live.at_rest()
        rows = live.rows("log", "tail", "--since", "1", "--no-follow", "--json")
        stored = [row["topic"] for row in rows if row["exchange"] == exchange]
        until(lambda: len(subjects(heard.read_text(), exchange)) >= len(stored), "all of it is heard")
        until(lambda: "forged_id.drift.scheduled" in subjects(heard.read_text(), "-"), "what has no exchange is heard")
        assert listening.poll() is None, heard.read_text()
    finally:
        listening.terminate()
        listening.wait(30)
    assert subjects(heard.read_text(), exchange) == stored
    assert {f"forged_id.{topic}" for topic in (*PATH, "memory.remembered")} <= set(stored)


ALERTS = (ROOT / "docs" / "alerts.md").read_text()
LISTENING = [
    next(block for block in blocks("python") if "nats" in block),
    *blocks("python", ALERTS),
    "from deploy.examples.calculator import main; main(['--context', '.neuraxis/broker/contexts/observer.json'])",
]


@pytest.mark.parametrize("script", LISTENING, ids=["subscriber", "reader", "calculator"])
def test_an_example_that_listens_says_in_a_line_that_the_broker_is_away(
    script: str, broker: Broker, tmp_path: Path
) -> None:
    for name in ("observer", "reader"):
        login = tmp_path / ".neuraxis" / "broker" / "contexts" / f"{name}.json"
        login.parent.mkdir(parents=True, exist_ok=True)
        login.write_text(json.dumps({"url": broker.url, "user": "", "password": "", "inbox_prefix": "_INBOX"}))

    async def make_a_stream() -> None:
        await (await JetStreamLog.connect(broker.url)).close()

    asyncio.run(make_a_stream())
    output = tmp_path / "said.txt"
    with output.open("wb") as said:
        listening = subprocess.Popen([sys.executable, "-c", script], stdout=said, stderr=said, cwd=tmp_path)
    try:
        until(lambda: has_client(broker), "the example is connected")
        time.sleep(1.0)
        broker.kill()
        until(lambda: "Connect call failed" in output.read_text(), "it says so")
        assert listening.poll() is None
    finally:
        listening.kill()
        listening.wait(30)
    assert "Traceback" not in output.read_text()


def has_client(broker: Broker) -> bool:
    """Whether a connection to the broker is established (state 01)."""
    port = f":{urlsplit(broker.url).port:04X}"
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()]
    return any(row[2].endswith(port) and row[3] == "01" for row in rows)


def subjects(heard: str, exchange: str) -> list[str]:
    """Return the subjects of an exchange's events in what the subscriber printed."""
    return [line.split()[0] for line in heard.splitlines() if exchange in line.split()[1:2]]
