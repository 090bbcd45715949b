"""A question that a long ledger cannot answer in time is ended, rather than that all others wait for it."""

import sqlite3
from pathlib import Path

import pytest

from events.errors import Unavailable
from events.ledger import ExchangeFilter, list_exchanges, overview_at
from events.ledger.time_limit import ended_after
from tests.events.ledger.messages import exchanges, write

ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"
TOO_LONG = r"^this takes more than 0 s in so long a ledger: ask without conditions, or for what is frequent$"


def test_a_query_that_takes_too_long_is_ended_and_the_next_one_is_not() -> None:
    connection = sqlite3.connect(":memory:")
    with pytest.raises(Unavailable, match=TOO_LONG), ended_after(0, connection):
        connection.execute(ENDLESS).fetchone()
    assert connection.execute("SELECT 1").fetchone() == (1,)
    with pytest.raises(sqlite3.OperationalError, match="no such table"), ended_after(9, connection):
        connection.execute("SELECT * FROM absent")


def test_lists_and_overviews_take_no_longer_than_they_may(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    write(path, exchanges(2_000))
    rare = ExchangeFilter(session="nobody's")
    assert list_exchanges(path, rare).exchanges == ()
    with pytest.raises(Unavailable, match=TOO_LONG):
        list_exchanges(path, rare, most_s=0)
    with pytest.raises(Unavailable, match=TOO_LONG):
        overview_at(path, 0, {}, most_s=0)
