"""``neuraxis reflection show`` over a ledger file."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from actors.reflection import ACTOR
from deploy.cli.tuning.reflection import reflection
from events.replay.presence_checks import NothingFound
from schemas.vocabulary.reflection import ReflectionScheduled
from tests.actors.reflection.builders import ON, end, selection
from tests.actors.scenario import configured
from tests.events.ledger.messages import INPUT, stored, write


def show(ledger: Path, agent: str, *arguments: str) -> Result:
    write(
        ledger,
        [
            stored(1, configured(ACTOR, ON), exchange="", session=""),
            stored(2, INPUT),
            stored(3, selection(0.1)),
            stored(4, end()),
            stored(5, ReflectionScheduled(wake_after_ms=ON.idle_after_ms), exchange="", session=""),
            stored(6, INPUT, exchange="x2"),
        ],
    )
    return CliRunner().invoke(reflection, ["show", agent, "--log", str(ledger), *arguments])


def test_an_agent_is_shown_with_its_open_exchanges_and_what_waits(tmp_path: Path) -> None:
    done = show(tmp_path / "ledger.db", "ada", "--json")
    assert done.exit_code == 0, done.exception
    found = json.loads(done.output[done.output.index("{") :])
    assert (found["agent"], found["open_exchanges"], found["counted"]) == ("ada", 1, 0)
    assert found["waiting"] == [{"stratum": "low_confidence", "waiting": 1}]


def test_people_read_it_in_words(tmp_path: Path) -> None:
    done = show(tmp_path / "ledger.db", "ada")
    assert "agent ada: disagreement 0 of 0 opinions that count, no pressure" in done.output
    assert "low_confidence" in done.output


def test_an_agent_that_nothing_is_kept_of_is_told_with_what_to_check(tmp_path: Path) -> None:
    done = show(tmp_path / "ledger.db", "nobody")
    assert isinstance(done.exception, NothingFound)
    with pytest.raises(NothingFound, match=r"reflection\.backend=llm"):
        raise done.exception
