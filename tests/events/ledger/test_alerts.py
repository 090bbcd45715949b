"""The read model of alerts: a row an outbreak, as it was told of last."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from events.ledger import rebuild
from events.log import Stored
from schemas.catalogue import CATALOGUE
from tests.events.ledger.messages import query, stored, tables, write

COLUMNS = "id, severity, source, topic, agent, session, exchange, status, count, first_seq, last_seq, since, last"


def alert(seq: int, *, at_ms: int = 0, **changes: Any) -> Stored:
    """Return a stored alert about a session's breaker."""
    sample = CATALOGUE["forged_id.alert.critical.breaker"].sample
    told = msgspec.structs.replace(
        sample, event="forged_id.breaker.tripped", agent="ada", session="s1", exchange="x1", **changes
    )
    return stored(seq, told, exchange="", agent="", session="", at_ms=at_ms)


FIRING = alert(8)
AGAIN = alert(12, count=2, cause_seq=11, last_ns=1_761_482_400_000_000_000)
RESOLVED = alert(20, at_ms=5, count=2, cause_seq=11, status="resolved", resolved_by="forged_id.breaker.reset")


def test_an_alert_has_a_row_with_whose_it_is_and_how_often(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    write(path, [FIRING])
    moment = "2025-10-26T12:34:56.000000+00:00"
    whose = ("forged_id.breaker.tripped", "ada", "s1", "x1")
    assert query(path, f"SELECT {COLUMNS}, resolved_at FROM alerts") == [
        ("0f" * 8, "critical", "breaker", *whose, "firing", 1, 7, 7, moment, moment, None)
    ]


@pytest.mark.parametrize("size", [1, 100])
def test_its_end_is_told_in_the_same_row(tmp_path: Path, size: int) -> None:
    path = tmp_path / "ledger.db"
    write(path, [FIRING, AGAIN, RESOLVED], size=size)
    assert query(path, "SELECT status, count, last_seq, resolved_at, resolved_by FROM alerts") == [
        ("resolved", 2, 11, "2023-11-14T22:13:20.005000+00:00", "forged_id.breaker.reset")
    ]


def test_a_later_outbreak_has_a_row_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    write(path, [FIRING, RESOLVED, alert(30, first_seq=29, cause_seq=29)])
    assert query(path, "SELECT first_seq, status FROM alerts ORDER BY first_seq") == [(7, "resolved"), (29, "firing")]


def test_it_is_folded_anew_to_the_same_rows(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    write(path, [FIRING, AGAIN, RESOLVED, alert(30, first_seq=29, cause_seq=29)], size=1)
    live = tables(path)
    assert len(live["alerts"]) == 2
    query(path, "DELETE FROM alerts")
    rebuild(path)
    assert tables(path) == live
