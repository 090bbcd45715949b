"""A name of an agent is no session's, and the other way round: nothing else is looked at instead of what was meant."""

import asyncio
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from actors.registry import ACTORS
from deploy.cli import main
from deploy.replaying.log_questions import ShowState, show_state
from events.replay.presence_checks import NothingFound
from events.replay.sources import LedgerSource
from schemas.actor import Scope
from tests.deploy.cli.replaying.test_what_if import TALK
from tests.each import each
from tests.events.ledger.messages import write
from tests.events.recording import PARTITIONS
from tests.events.whatif.asking import live
from tests.fixtures import FOLDER

NEWEST = max(FOLDER.glob("*.nxb"))
AGENT, SESSION, EXCHANGE = "ann", "evening", "exchange-2"


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("keys") / "ledger.db"
    write(path, live(TALK).log, partitions=PARTITIONS)
    return path


def run(ledger: Path, *words: str) -> Result:
    return CliRunner().invoke(main, [*words, "--log", str(ledger)])


def hashes(ledger: Path, *words: str) -> dict[str, str]:
    found: dict[str, str] = json.loads(run(ledger, "replay", "--json", *words).stdout)["state_hashes"]
    return found


@each(
    ("command", "told"),
    [
        (("state", "breaker", AGENT), "'ann' is an agent, and the states of breaker are kept by session"),
        (("state", "breaker", EXCHANGE), "'exchange-2' is an exchange, and the states of breaker are kept by session"),
        (("state", "memory", SESSION), "'evening' is a session, and the states of memory are kept by agent"),
        (("bisect", "breaker", AGENT, "trust < 0.5"), "name its session, such as 'morning'"),
        (("bisect", "memory", SESSION, "agents exists"), "name its agent, such as 'ann'"),
        (("diff", "breaker", AGENT, "--at", "1", "--at", "40"), "'ann' is an agent"),
        (("diff", "memory", SESSION, "--at", "1", "--at", "40"), "'evening' is a session"),
        (("diff", "1", "40", "--actor", "router", "--key", EXCHANGE), "name its session, such as 'evening'"),
        (("replay", "--verify", "--actor", "breaker", "--key", AGENT), "'ann' is an agent"),
        (("replay", "--actor", "breaker", "--key", EXCHANGE), "'exchange-2' is an exchange"),
        (("precedents", "list", "--agent", SESSION), "'evening' is a session, and precedents are kept by agent"),
        (("allowances", "list", "--agent", SESSION), "'evening' is a session, and allowances are kept by agent"),
    ],
    named=str,
)
def test_a_key_of_another_kind_is_refused_with_what_to_name(command: tuple[str, ...], told: str, ledger: Path) -> None:
    result = run(ledger, *command)
    assert result.exit_code == 1, result.output
    assert told in " ".join(result.stderr.split())
    assert "would hold it" not in result.stderr


def test_precedents_of_a_session_would_change_nothing(ledger: Path, tmp_path: Path) -> None:
    file = tmp_path / "precedents.json"
    file.write_text(json.dumps([{"precedent": "p-1", "description": TALK[0][1], "harm_level": 0.9}]))
    result = run(ledger, "what-if", "--precedents", str(file), "--agent", SESSION)
    assert result.exit_code == 1
    assert "'evening' is a session" in result.stderr


def test_a_replay_of_an_agent_leaves_out_whoever_keeps_nothing_by_agent_and_says_so(ledger: Path) -> None:
    found = hashes(ledger, "--key", AGENT)
    scopes = {ACTORS[name.partition("/")[0]].scope for name in found}
    assert scopes == {Scope.AGENT, Scope.GLOBAL}
    assert f"memory/{PARTITIONS.agent_token(AGENT)}" in found
    told = " ".join(run(ledger, "replay", "--verify", "--key", AGENT).stderr.split())
    assert "left out: 'ann' is an agent, and the states of " in told
    assert "breaker" in told


def test_a_replay_of_a_session_folds_the_partition_of_its_agent(ledger: Path) -> None:
    found = hashes(ledger, "--key", SESSION)
    assert f"memory/{PARTITIONS.agent_token(AGENT)}" in found
    assert f"breaker/{PARTITIONS.session_token(SESSION)}" in found
    assert found.items() < hashes(ledger).items()
    assert len({name.partition("/")[0] for name in found}) == len(found)


def test_a_partition_is_named_by_its_digits_as_ever(ledger: Path) -> None:
    token = PARTITIONS.session_token(SESSION)
    assert f"breaker/{token}" in hashes(ledger, "--key", token)
    assert run(ledger, "state", "breaker", token).exit_code == 0


def test_over_http_such_a_key_is_absent_too(ledger: Path) -> None:
    source = LedgerSource(ledger)
    try:
        with pytest.raises(NothingFound, match="'ann' is an agent, and the states of breaker"):
            asyncio.run(show_state(source, ShowState(actor="breaker", key=AGENT)))
    finally:
        source.close()


def test_what_an_agent_keeps_in_one_partition_is_not_shown_as_all_of_it() -> None:
    result = run(NEWEST, "state", "router", "default")
    assert result.exit_code == 1
    assert "'default' is an agent, and the states of router are kept by session" in result.stderr
