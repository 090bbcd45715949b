"""Alerts as rows and lines, and what still fires."""

import json
from pathlib import Path
from typing import Any

import msgspec
from click.testing import CliRunner
from rich.text import Text

from deploy.cli import main
from deploy.cli.rendering.alerts import AlertShown, UnreadableAlerts, alert_of, is_severe_enough, line_of, still_firing
from events.log import Stored
from schemas.catalogue import CATALOGUE
from tests.each import each
from tests.events.ledger.messages import INPUT, stored, write


def told(seq: int, **changes: Any) -> AlertShown:
    """Return an alert of the log, shown."""
    event = msgspec.structs.replace(CATALOGUE["forged_id.alert.critical.breaker"].sample, **changes)
    found = alert_of(stored(seq, event, agent="", session="", exchange=""))
    assert found is not None
    return found


def test_what_is_no_alert_is_not_shown() -> None:
    assert alert_of(stored(1, INPUT)) is None
    assert alert_of(stored(2, CATALOGUE["forged_id.alert.scheduled"].sample)) is None


def test_what_fires_is_what_has_not_been_resolved_since() -> None:
    first, other = told(1, alert="a"), told(2, alert="b")
    over, again = told(3, alert="a", status="resolved"), told(4, alert="a", count=1)
    grown = told(5, alert="b", count=2)
    assert still_firing([first, other]) == [first, other]
    assert still_firing([first, other, over]) == [other]
    assert still_firing([first, other, over, again, grown]) == [again, grown]


@each(("least", "is_shown"), [("critical", False), ("warning", True), ("info", True)])
def test_a_least_severity_lets_the_louder_through(least: Any, is_shown: bool) -> None:
    assert is_severe_enough(told(1, severity="warning"), least) is is_shown


def plain(line: Text) -> str:
    """Return a line without its styles."""
    return line.plain


def test_a_line_says_what_whose_how_often_and_what_ended_it() -> None:
    line = plain(line_of(told(7, agent="felix", session="s1", count=3, suppressed=4)))
    assert line.startswith("       7 2023-11-14 22:13:20 critical firing   breaker.failed x3 agent=felix session=s1")
    assert line.endswith("(4 held back before this)")
    over = plain(line_of(told(8, status="resolved", resolved_by="forged_id.breaker.reset")))
    assert over.endswith("(resolved by breaker.reset)")


def test_a_name_cannot_steer_the_terminal() -> None:
    assert "\x1b" not in plain(line_of(told(7, agent="\x1b[2Jfelix")))


def later(seq: int, status: str, body: bytes | None = None) -> Stored:
    """Return an alert of a later release, about something that only that release knows."""
    event = msgspec.structs.replace(CATALOGUE["forged_id.alert.critical.breaker"].sample, alert="later", status=status)
    made = stored(seq, event, agent="", session="", exchange="")
    headers = made.headers | {"ce-type": "forged_id.alert.critical.oracle"}
    subject = made.subject.replace("critical.breaker", "critical.oracle")
    return msgspec.structs.replace(made, subject=subject, headers=headers, data=made.data if body is None else body)


def test_alerts_that_cannot_be_read_are_counted_and_fire_until_they_are_resolved() -> None:
    found = UnreadableAlerts()
    found.take(stored(1, CATALOGUE["forged_id.alert.critical.breaker"].sample))
    assert (found.count, found.open_text) == (0, "")
    for alert in (later(2, "firing"), later(3, "firing", b"{")):
        found.take(alert)
    assert list(found.open) == ["later", "sequence 3"]
    found.take(later(4, "resolved"))
    assert (found.count, list(found.open)) == (3, ["sequence 3"])
    assert found.open_text == "; 1 cannot be read, the first at sequence 3"
    assert found.first.startswith("at sequence 2: ")


def test_what_fires_since_before_the_beginning_asked_for_is_counted(tmp_path: Path) -> None:
    sample = CATALOGUE["forged_id.alert.critical.breaker"].sample
    made = [stored(seq, msgspec.structs.replace(sample, alert=f"alert-{seq}", status="firing")) for seq in (1, 2, 3)]
    over = stored(4, msgspec.structs.replace(sample, alert="alert-3", status="resolved"))
    write(tmp_path / "ledger.db", [*made, over])
    for since, firing, earlier in ((None, [1, 2], 0), (1, [1, 2], 0), (2, [2], 1), (3, [], 2)):
        chosen = () if since is None else ("--since", str(since))
        told = CliRunner().invoke(main, ["alerts", "--open", "--json", "--log", str(tmp_path / "ledger.db"), *chosen])
        assert [json.loads(line)["seq"] for line in told.stdout.splitlines()] == firing
        assert told.exit_code == (1 if firing else 0)
        said = " ".join(told.stderr.split())
        assert (f"announced before that, and firing still: {earlier};" in said) == bool(earlier)


def test_the_command_does_not_pass_them_over_in_silence(tmp_path: Path) -> None:
    write(tmp_path / "ledger.db", [later(1, "firing")])
    listed = CliRunner().invoke(main, ["alerts", "--log", str(tmp_path / "ledger.db")])
    assert "alerts that cannot be read are not shown: 1, the first at sequence 1" in listed.stderr
    still = CliRunner().invoke(main, ["alerts", "--open", "--log", str(tmp_path / "ledger.db")])
    assert still.exit_code == 1
    assert "no alert is firing" not in still.stderr
    assert (
        "no alert that can be read is firing; 1 cannot be read, the first at sequence 1"
        in str(still.exception) + still.stderr
    )
