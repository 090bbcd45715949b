"""What a release that has no such actor any more says about the events which one recorded."""

import json
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from deploy.cli import main
from deploy.replaying.bundle_verdicts import verify_bundle
from events.bundles import read_events
from schemas.catalogue import CATALOGUE
from tests.events.ledger.messages import write
from tests.fixtures import FOLDER
from tests.without_actor import without_actor

NEWEST = max(FOLDER.glob("*.nxb"))
GONE = "memory"
SUBJECT = "forged_id.memory.recalled"


def replay(*arguments: str, log: Path = NEWEST) -> Result:
    return CliRunner().invoke(main, ["replay", "--log", str(log), *arguments])


@pytest.fixture
def removed() -> Iterator[None]:
    """A release without the actor whose events are in the log."""
    with without_actor(GONE):
        yield


def counts(*arguments: str, log: Path = NEWEST) -> dict[str, int]:
    found: dict[str, int] = json.loads(replay("--verify", "--json", *arguments, log=log).stdout)["without_actor"]
    return found


def test_a_release_that_has_all_actors_has_nothing_to_say() -> None:
    assert counts() == {}
    assert "no actor of this release" not in replay("--verify").stdout
    assert "no actor of this release" not in verify_bundle(NEWEST).summary


def test_events_of_an_actor_that_was_removed_are_counted_and_fail_a_strict_verification(removed: None) -> None:
    told = replay("--verify")
    assert told.exit_code == 0, told.stderr
    assert "are of no actor of this release" in " ".join(told.stdout.split())
    assert SUBJECT in told.stdout
    strict = replay("--verify", "--strict")
    assert strict.exit_code == 1
    assert f"{SUBJECT} {counts()[SUBJECT]}" in " ".join(strict.stderr.split())
    assert SUBJECT in verify_bundle(NEWEST).summary
    assert "no actor of this release" not in replay().stdout


def test_only_events_up_to_the_end_of_the_replay_count(removed: None) -> None:
    recorded = [each.seq for batch in read_events(NEWEST) for each in batch if each.subject.endswith("memory.recalled")]
    assert counts()[SUBJECT] == len(recorded) > 2
    assert counts("--to", str(recorded[1]))[SUBJECT] == 2


def test_events_of_an_actor_that_was_removed_with_its_vocabulary_are_counted_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = [each for batch in read_events(NEWEST) for each in batch]
    removed = "log._._.removed.session_begun"
    headers = log[-1].headers | {"ce-type": "forged_id.removed.session_begun"}
    write(
        tmp_path / "log.db",
        [*log, msgspec.structs.replace(log[-1], seq=len(log) + 1, subject=removed, headers=headers)],
    )
    assert "forged_id.removed.session_begun" not in CATALOGUE
    assert counts(log=tmp_path / "log.db") == {"forged_id.removed.session_begun": 1}
    assert replay("--verify", "--strict", log=tmp_path / "log.db").exit_code == 1
