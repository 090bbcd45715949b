"""``neuraxis diff`` and ``bisect`` over a ledger file: nothing runs, nothing is reached."""

import json
import re
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
    path = tmp_path_factory.mktemp("debugging") / "ledger.db"
    write(path, live(TALK).log, partitions=PARTITIONS)
    return path


def run(ledger: Path, command: str, *arguments: str) -> Result:
    return CliRunner().invoke(main, [command, *arguments, "--log", str(ledger)])


def test_a_point_is_not_compared_with_itself(ledger: Path) -> None:
    refused = run(ledger, "diff", "5", "5")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "no event lies between the two points" in refused.stderr


def test_the_difference_of_all_holds_that_of_one(ledger: Path) -> None:
    last = json.loads(run(ledger, "replay", "--json").stdout)["last_seq"]
    every = run(ledger, "diff", "1", str(last), "--json").stdout.splitlines()
    one = run(ledger, "diff", "breaker", "evening", "--at", "1", "--at", str(last), "--json").stdout.splitlines()
    same = run(ledger, "diff", "1", str(last), "--actor", "breaker", "--key", "evening", "--json").stdout.splitlines()
    assert one
    assert one == same
    assert set(one) < set(every)
    assert {json.loads(line)["actor"] for line in one} == {"breaker"}


def test_a_difference_for_people_shows_both_values(ledger: Path) -> None:
    result = run(ledger, "diff", "breaker", "evening", "--at", "1", "--at", "84")
    assert result.exit_code == 0
    assert "breaker/" in result.stdout
    assert "nothing → " in result.stdout


def test_one_point_alone_is_wrong_use(ledger: Path) -> None:
    result = run(ledger, "diff", "breaker", "evening", "--at", "1")
    assert result.exit_code == 2
    assert "--at is given twice" in result.stderr


def test_the_event_found_is_the_first_after_which_it_holds(ledger: Path) -> None:
    found = json.loads(run(ledger, "bisect", "breaker", "evening", "trust < 0.5", "--json").stdout)
    assert found["after"] < 0.5
    # The actor had answered it by the end of its exchange, and not yet before it came.
    last = json.loads(run(ledger, "replay", "--json").stdout)["last_seq"]
    places = [trust_below_half(ledger, seq) for seq in range(1, last + 1)]
    assert found["seq"] == next(place for place, holds in places if holds)


def trust_below_half(ledger: Path, seq: int) -> tuple[int, bool]:
    """Return the place of the breaker's state at a sequence, and whether it trusts a session less than at first."""
    row = json.loads(run(ledger, "state", "breaker", "evening", "--at", str(seq), "--json").stdout)
    return row["place"], any(kept.get("trust", 1) < 0.5 for kept in row["under_key"].values() if isinstance(kept, dict))


def test_the_event_found_leads_to_its_exchange(ledger: Path) -> None:
    shown = run(ledger, "bisect", "breaker", "evening", 'state == "VIOLATED"').stdout
    assert 'nothing → "VIOLATED"' in shown
    assert "`neuraxis why exchange-" in shown


def test_what_never_holds_fails_the_check(ledger: Path) -> None:
    result = run(ledger, "bisect", "router", "evening", "no_such_field exists")
    assert result.exit_code == 1
    assert "holds of no state of router under evening" in result.stderr


def test_what_holds_at_once_is_told_as_such(ledger: Path) -> None:
    assert "it holds from the start" in run(ledger, "bisect", "router", "evening", "no_such_field != 1").stdout


def test_a_condition_that_cannot_be_read_is_wrong_use(ledger: Path) -> None:
    result = run(ledger, "bisect", "router", "evening", "trust is low")
    assert result.exit_code == 2
    assert "character 6: expected one of" in result.stderr


def test_a_replay_of_a_key_folds_its_partitions_to_the_same_states(ledger: Path) -> None:
    every = json.loads(run(ledger, "replay", "--verify", "--json").stdout)
    one = json.loads(run(ledger, "replay", "--verify", "--key", "evening", "--json").stdout)
    hashes = one["state_hashes"]
    assert hashes.items() < every["state_hashes"].items()
    assert len({name.partition("/")[0] for name in hashes}) == len(hashes)
    assert one["clean"]


def test_a_path_selects_a_part_of_the_state(ledger: Path) -> None:
    whole = json.loads(run(ledger, "state", "breaker", "evening", "--json").stdout)
    for path, kept in whole["under_key"].items():
        assert json.loads(run(ledger, "state", "breaker", "evening", "--path", path).stdout) == kept
    assert whole["under_key"]


def test_a_path_that_leads_nowhere_fails_the_check(ledger: Path) -> None:
    result = run(ledger, "state", "breaker", "evening", "--path", "nothing.here")
    assert result.exit_code == 1
    assert "nothing.here leads nowhere" in result.stderr


def test_a_path_is_looked_up_below_what_is_kept_under_the_key_as_bisect_does(ledger: Path) -> None:
    kept = json.loads(run(ledger, "state", "breaker", "evening", "--json").stdout)["under_key"]
    found = json.loads(run(ledger, "state", "breaker", "evening", "--path", "trust").stdout)
    assert found == {path: value["trust"] for path, value in kept.items()}
    assert len(found) > 1, "a session that was refused is kept as marked, too"


def test_a_path_that_leads_nowhere_is_told_where_one_may_lead(ledger: Path) -> None:
    for arguments in (("state", "--path", "trsut"), ("bisect", "trsut < 0.5")):
        command, *rest = arguments
        result = run(ledger, command, "breaker", "evening", *rest)
        assert result.exit_code == 1
        assert "trsut leads nowhere: below sessions.young[" in result.stderr
        assert "trust" in result.stderr
        assert "at the top there are settings, sessions" in result.stderr


def test_what_never_came_to_be_is_no_wrong_path(ledger: Path) -> None:
    result = run(ledger, "bisect", "breaker", "evening", "trust < -5")
    assert result.exit_code == 1
    assert "holds of no state" in result.stderr


def test_a_session_that_nobody_knows_is_said_to_be_unknown(ledger: Path) -> None:
    for more in ([], ["--json"], ["--path", "sessions"]):
        result = run(ledger, "state", "breaker", "yesterday", *more)
        assert re.search(r"nothing is kept under yesterday there: this is all of breaker/\d\d, which", result.stderr)
        assert "yesterday" not in result.stdout
    for known in ("evening", "00"):
        assert "nothing is kept" not in run(ledger, "state", "breaker", known).stderr


@each(
    ("arguments", "told"),
    [
        (("diff", "breaker", "evening"), "give two points, too"),
        (("diff", "breaker", "", "--at", "1", "--at", "2"), "the key is empty"),
        (("diff", "breker", "evening", "--at", "1", "--at", "2"), "did you mean 'breaker'"),
        (("diff", "1", "soon"), "'soon' is no point of a log"),
        (("diff", "1", "2", "--key", "evening"), "--key needs --actor"),
        (("diff", "breaker", "all", "--at", "1", "--at", "2"), "is divided by session"),
        (("bisect", "breaker", "evening", "trust = 0.5"), "expected one of =="),
        (("bisect", "breaker", "", "trust < 0.5"), "the key is empty"),
        (("bisect", "breaker", "evening", "trust < 0.5", "--to", "soon"), "is no point of a log"),
        (("state", "router", ""), "the key is empty"),
        (("state", "router", "evening", "--path", "a..b"), "character 2"),
        (("state", "gateway", "evening"), "there is no actor 'gateway'"),
    ],
)
def test_wrong_use_is_refused_with_what_to_do(ledger: Path, arguments: tuple[str, ...], told: str) -> None:
    result = run(ledger, *arguments)
    assert result.exit_code == 2
    assert told in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert not result.stdout


@pytest.mark.parametrize("points", [("20", "10"), ("2026-02-01", "2026-01-01")])
def test_points_the_wrong_way_round_are_refused(ledger: Path, points: tuple[str, str]) -> None:
    result = run(ledger, "diff", *points)
    assert result.exit_code == 2
    assert "the first point lies behind the second" in result.stderr


@each(
    ("condition", "told"),
    [
        ('trust < "low"', 'and never what it is compared with: "low", a text'),
        ("state == 5", "holds a text"),
        ("trust in [true, []]", "holds a number"),
    ],
)
def test_values_of_another_kind_than_the_condition_is_about_are_told(ledger: Path, condition: str, told: str) -> None:
    result = run(ledger, "bisect", "breaker", "morning", condition)
    assert result.exit_code == 1
    assert told in result.stderr


def test_a_condition_that_may_hold_and_does_not_is_no_mistake(ledger: Path) -> None:
    result = run(ledger, "bisect", "breaker", "morning", "trust < -1")
    assert result.exit_code == 1
    assert "trust < -1 holds of no state of breaker under morning" in result.stderr
