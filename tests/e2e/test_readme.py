"""What README tells people to type works as it stands."""

import os
import re
import subprocess
import sys
from pathlib import Path

from deploy.config.loading import all_sections, resolve
from tests.deploy.waiting import until
from tests.e2e.live import Live, environment
from tests.e2e.test_examining import PATH
from tests.e2e.test_exchanges import fresh

ROOT = Path(__file__).resolve().parent.parent.parent
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    """Return the code blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


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


def subjects(heard: str, exchange: str) -> list[str]:
    """Return the subjects of an exchange's events in what the subscriber printed."""
    return [line.split()[0] for line in heard.splitlines() if exchange in line.split()[1:2]]
