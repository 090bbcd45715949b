"""A bundle is all that is needed: every command of the debugger reads one where no broker can be reached."""

import json
import socket
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from deploy.cli import main
from tests.deploy.cli.replaying.test_what_if import TALK
from tests.each import each
from tests.events.ledger.messages import write
from tests.events.recording import PARTITIONS
from tests.events.whatif.asking import live


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recorded") / "ledger.db"
    write(path, live(TALK).log, partitions=PARTITIONS)
    return path


@pytest.fixture(scope="module")
def bundle(ledger: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("carried") / "case.nxb"
    made = CliRunner().invoke(main, ["log", "export", "--format", "bundle", "--log", str(ledger), "-o", str(path)])
    assert made.exit_code == 0, made.stderr
    return path


@pytest.fixture(autouse=True)
def _nothing_can_be_reached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand in an empty folder, with a broker named at which nobody listens."""
    monkeypatch.chdir(tmp_path)
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        monkeypatch.setenv("NATS_URL", f"nats://127.0.0.1:{bound.getsockname()[1]}")


def run(file: Path, *arguments: str) -> Result:
    done = CliRunner().invoke(main, [*arguments, "--log", str(file)])
    assert done.exit_code == 0, done.stderr
    return done


QUESTIONS = [
    ("why", "last", "--json"),
    ("why", "exchange-1"),
    ("replay", "--verify", "--json"),
    ("replay", "--actor", "breaker", "--key", "evening", "--to", "80", "--json"),
    ("what-if", "--set", "router.base_scores.RESPOND=0.9", "--json"),
    ("what-if", "--sweep", "router.base_scores.RESPOND=0.4:0.9:0.5"),
    ("state", "breaker", "evening", "--json"),
    ("state", "breaker", "evening", "--at", "80", "--path", "trust"),
    ("diff", "1", "80", "--json"),
    ("diff", "breaker", "evening", "--at", "1", "--at", "84"),
    ("bisect", "breaker", "evening", "trust < 0.5", "--json"),
    ("log", "tail", "--json", "--text"),
]


@each("question", QUESTIONS, named=" ".join)
def test_a_bundle_alone_answers_as_the_ledger_does(question: tuple[str, ...], bundle: Path, ledger: Path) -> None:
    answer = run(bundle, *question).stdout
    assert answer.replace(f"bundle {bundle}", f"ledger {ledger}") == run(ledger, *question).stdout
    assert answer.strip()


def test_a_bundle_alone_verifies(bundle: Path) -> None:
    [told] = map(json.loads, run(bundle, "log", "verify", "--json").stdout.splitlines())
    assert told["ok"]
    assert "no broker answers" in told["not_compared"]
    [replayed] = map(json.loads, run(bundle, "replay", "--verify", "--json").stdout.splitlines())
    assert replayed["clean"]


def test_a_bundle_alone_is_drawn(bundle: Path, tmp_path: Path) -> None:
    run(bundle, "why", "last", "--svg", "why.svg")
    assert (tmp_path / "why.svg").read_bytes().startswith(b"<?xml")


def test_nothing_is_left_beside_a_bundle(bundle: Path) -> None:
    run(bundle, "why", "last")
    assert [each.name for each in bundle.parent.iterdir()] == [bundle.name]
