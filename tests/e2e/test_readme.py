"""What README tells people to type works as it stands."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

from deploy.config import all_sections, resolve
from tests.deploy.waiting import until
from tests.e2e.live import Live, environment
from tests.e2e.test_examining import PATH
from tests.e2e.test_exchanges import fresh

ROOT = Path(__file__).resolve().parent.parent.parent
README = (ROOT / "README.md").read_text()
PROGRAM = ".venv/bin/neuraxis "


def blocks(language: str) -> list[str]:
    """Return the code blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


COMMANDS = [line for block in blocks("sh") for line in block.splitlines() if line.startswith(PROGRAM)]


def test_the_commands_of_the_readme_run_in_their_order(live: Live) -> None:
    for line in COMMANDS:
        words = shlex.split(line, comments=True)[1:]
        assert live.run(*(str(ROOT / word) if word.endswith(".jsonl") else word for word in words)).stdout, line


def test_every_make_target_of_the_readme_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    used = set(re.findall(r"make ([a-z-]+)", README))
    assert used
    assert used <= targets


def test_the_configuration_of_the_readme_is_one() -> None:
    import tomllib

    from deploy.config import Layer

    (text,) = blocks("toml")
    config = resolve(all_sections(), [Layer("README.md", tomllib.loads(text))])
    assert config.runtime.processes == 2


def test_the_subscriber_of_the_readme_hears_every_event_on_its_literal_subject(live: Live) -> None:
    (script,) = blocks("python")
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


def subjects(heard: str, exchange: str) -> list[str]:
    """Return the subjects of an exchange's events in what the subscriber printed."""
    return [line.split()[0] for line in heard.splitlines() if exchange in line.split()[1:2]]
