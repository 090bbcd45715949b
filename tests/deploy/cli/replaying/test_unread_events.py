"""What a later release wrote, and this one cannot read, is named by whatever sums the log up without it."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from actors.registry import ACTORS
from deploy.cli import main
from events.bundles import read_events, read_manifest, write_bundle
from events.log import Stored
from events.replay.replay import Replay
from events.replay.run_replay import END
from events.replay.sources import LedgerSource
from events.replay.states.from_snapshots import fold_from_nearest
from schemas.subjects import split_stored
from tests.each import each
from tests.fixtures import FOLDER

NEWEST = max(FOLDER.glob("*.nxb"))

ANN = "ann"
"""A session of the recorded set."""


def of_later_release(path: Path, is_later: Callable[[str], bool], version: str = "2") -> Path:
    """Copy the recorded bundle; the events whose topics ``is_later`` have a version that this release does not know."""

    async def batches():
        for batch in read_events(NEWEST):
            yield [_raised(each, version) if is_later(split_stored(each.subject)[0]) else each for each in batch]

    asyncio.run(write_bundle(path, batches(), read_manifest(NEWEST)))
    return path


def _raised(stored: Stored, version: str) -> Stored:
    return msgspec.structs.replace(stored, headers={**stored.headers, "ce-dataversion": version})


def run(*words: str) -> Result:
    return CliRunner().invoke(main, words)


@each(
    ("topic", "command"),
    [
        ("operator.patterns_imported", ("patterns", "list")),
        ("operator.patterns_imported", ("patterns", "test", "recite the vault phrase")),
        ("precedent.recorded", ("precedents", "list")),
        ("guardrails.finalized", ("guardrails", "show", "felix")),
        ("tick.observed", ("review", "show", "felix")),
        ("router.mode_selected", ("regulator", "show", "default")),
        ("input.received", ("drift", "show", "default")),
        ("input.received", ("state", "intuition", "default")),
        ("input.received", ("diff", "20", "200", "--actor", "memory")),
        ("appraisal.completed", ("bisect", "breaker", ANN, "trust < 0")),
        ("appraisal.completed", ("breaker", "show", ANN)),
        ("llm.failed", ("failed", "list")),
    ],
    named=lambda each: each if isinstance(each, str) else " ".join(each[:2]),
)
def test_what_is_left_out_is_named(topic: str, command: tuple[str, ...], tmp_path: Path) -> None:
    later = of_later_release(tmp_path / "later.nxb", f"forged_id.{topic}".__eq__)
    assert "cannot read" not in run(*command, "--log", str(NEWEST)).stderr
    told = run(*command, "--log", str(later))
    assert "that this release cannot read" in told.stderr, told.output
    assert f"forged_id.{topic} has version 2; this release knows 1 to 1" in told.stderr
    assert "sequence " in told.stderr


@pytest.mark.parametrize(
    ("topic", "command"),
    [("precedent.recorded", ("precedents", "list")), ("llm.failed", ("failed", "list"))],
    ids=["precedents", "failed"],
)
def test_a_list_with_nothing_in_it_but_what_cannot_be_read_fails(
    topic: str, command: tuple[str, ...], tmp_path: Path
) -> None:
    later = of_later_release(tmp_path / "later.nxb", f"forged_id.{topic}".__eq__)
    assert run(*command, "--log", str(NEWEST)).exit_code == 0
    assert run(*command, "--log", str(later)).exit_code == 1


def test_failures_of_an_actor_that_this_release_does_not_have_are_named(tmp_path: Path) -> None:
    async def batches():
        for batch in read_events(NEWEST):
            yield [_of_sentinel(each) for each in batch]

    later = tmp_path / "later.nxb"
    asyncio.run(write_bundle(later, batches(), read_manifest(NEWEST)))
    told = run("failed", "list", "--log", str(later))
    assert told.exit_code == 1
    assert "4 events that this release cannot read are left out" in told.stderr
    assert "'forged_id.sentinel.failed' is not in the catalogue" in told.stderr


def _of_sentinel(stored: Stored) -> Stored:
    if not stored.subject.endswith(".llm.failed"):
        return stored
    return msgspec.structs.replace(
        stored,
        subject=stored.subject.replace("llm.failed", "sentinel.failed"),
        headers={**stored.headers, "ce-type": "forged_id.sentinel.failed"},
    )


def test_a_state_says_in_json_what_it_lacks(tmp_path: Path) -> None:
    later = of_later_release(tmp_path / "later.nxb", "forged_id.input.received".__eq__)
    whole, lacking = (
        json.loads(run("state", "intuition", "default", "--json", "--log", str(each)).stdout)
        for each in (NEWEST, later)
    )
    assert whole["unread"] == ""
    assert lacking["unread"].startswith("15 events that this release cannot read are left out (the first at sequence ")


def test_a_what_if_without_an_exchange_says_that_inputs_cannot_be_read(tmp_path: Path) -> None:
    later = of_later_release(tmp_path / "later.nxb", "forged_id.input.received".__eq__)
    told = run("what-if", "--set", "router.base_scores.CLARIFY=0.9", "--log", str(later))
    assert told.exit_code == 1
    assert "15 events cannot be read by this release" in told.stderr


def test_an_input_that_cannot_be_read_is_not_sent_again_and_that_says_where_it_is(tmp_path: Path) -> None:
    later = of_later_release(tmp_path / "later.nxb", "forged_id.input.received".__eq__)
    told = run("rerun", "last", "--log", str(later), "--data", str(tmp_path))
    assert told.exit_code == 1
    assert "this release cannot read the input of exchange" in told.stderr
    assert "has version 2; this release knows 1 to 1" in told.stderr


def test_a_cause_that_cannot_be_read_is_not_missing_from_the_log(tmp_path: Path) -> None:
    later = of_later_release(tmp_path / "later.nxb", "forged_id.input.received".__eq__)
    told = run("why", "last", "--log", str(later)).stdout
    assert "a cause between the end and the input cannot be read by this release" in told
    assert "missing from the log" not in told


def test_a_snapshot_hides_no_event_that_could_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    later = of_later_release(tmp_path / "later.nxb", "forged_id.input.received".__eq__)
    run("log", "import", str(later), "--ledger", str(tmp_path / "ledger.db"))
    for name in ("MIN_SEQUENCES", "SPACING_OF_ONE"):
        monkeypatch.setattr(f"events.replay.states.from_snapshots.{name}", 10)
    intuition, said = ACTORS["intuition"], []
    for _ in range(2):
        source = LedgerSource(tmp_path / "ledger.db")
        replay = Replay([intuition], source.partitions, only={"intuition": "00"})
        asyncio.run(fold_from_nearest(source, replay, [(intuition, "00")], END, lambda _: None))
        said.append(source.unread.text)
        source.close()
    assert said[0] == said[1]
    assert said[0].startswith("15 events")
