"""``neuraxis drift show`` over a ledger file."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from actors.drift import ACTOR
from actors.drift.settings import DriftSettings
from deploy.cli.tuning.drift import drift, drift_overview
from events.decoding import Recorded, decode
from events.replay.presence_checks import NothingFound
from schemas.catalogue import CATALOGUE
from schemas.vocabulary.drift import DriftScheduled
from tests.actors.drift.builders import partition, talk, thought
from tests.actors.scenario import configured
from tests.events.ledger.messages import INPUT, RESPONSE, START_NS, stored, write

STARTED, THOUGHT = (CATALOGUE[f"forged_id.drift.{name}"].sample for name in ("started", "thought"))
SCHEDULED = DriftScheduled(wake_after_ms=300_000, long_gap=False, draws=(0.5, 0.5, 0.5))

MESSAGES = [
    stored(1, configured(ACTOR, DriftSettings()), exchange="", session=""),
    stored(2, INPUT),
    stored(3, RESPONSE),
    stored(4, SCHEDULED, exchange="", session=""),
    stored(5, STARTED, exchange="", session="", at_ms=300_000),
    stored(6, THOUGHT, exchange="", session="s1", at_ms=300_010),
    stored(7, SCHEDULED, exchange="", session="", at_ms=300_010),
    stored(8, INPUT, exchange="x2"),
]


def show(ledger: Path, agent: str, *arguments: str) -> Result:
    write(ledger, MESSAGES)
    return CliRunner().invoke(drift, ["show", agent, "--log", str(ledger), *arguments])


def test_an_agent_is_shown_with_its_thoughts_and_when_the_next_is_due(tmp_path: Path) -> None:
    done = show(tmp_path / "ledger.db", "ada", "--json")
    assert done.exit_code == 0, done.exception
    found = json.loads(done.output[done.output.index("{") :])
    assert (found["agent"], found["open_exchanges"], found["drifting"]) == ("ada", 1, False)
    assert found["next"].startswith("2023-11-14T22:23:20.01")
    (said,) = found["thoughts"]
    assert (said["seq"], said["concept"], said["session"], said["by"]) == (6, "peru", "s1", "composer")
    assert (found["fatigue"], found["fatigue_budget"], found["resting"]) == (0.0, 2.5, []), "long ago by now"


def test_people_read_it_in_words(tmp_path: Path) -> None:
    done = show(tmp_path / "ledger.db", "ada")
    assert "agent ada: fatigue 0 of 2.5 · next 2023-11-14T22:23:20" in done.output
    assert "1 exchange open · no drift is under way" in done.output
    assert "An idle question" in done.output


def test_none_of_the_thoughts_is_shown_where_none_is_asked_for(tmp_path: Path) -> None:
    assert "An idle question" not in show(tmp_path / "ledger.db", "ada", "--last", "0").output


def test_an_agent_that_never_drifted_is_told_with_what_to_check(tmp_path: Path) -> None:
    done = show(tmp_path / "ledger.db", "nobody")
    assert isinstance(done.exception, NothingFound)
    with pytest.raises(NothingFound, match=r"drift\.enabled"):
        raise done.exception


def test_a_tired_mind_is_shown_with_what_rests_and_for_how_long() -> None:
    actor = partition()
    talk(actor)
    thought(actor, 0.9, seed="concept:1")
    own = [each for each in map(decode, MESSAGES) if isinstance(each, Recorded)]
    found = drift_overview("agent", actor.state, own, 10, actor.now_ns + 60_000_000_000)
    assert found.fatigue == 0.9
    assert [(each.concept, each.seconds_left) for each in found.resting] == [("concept:1", 59 * 60)]
    assert actor.now_ns > START_NS
