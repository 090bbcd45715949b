"""Events that this release cannot read are missing from the ledger's tables, and what is read from these says so."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from events.ledger import ExchangeFilter, exchange_result, list_exchanges, overview_at, rebuild, verify
from events.ledger.overview import Overview
from events.ledger.read_models import fingerprint, is_folded
from events.log import Stored
from schemas.catalogue import CATALOGUE
from tests.events.ledger.messages import INPUT, MODE, PASSED, RESPONSE, exchanges, of_later_release, stored, write
from tests.events.ledger.test_alerts import alert


def ledger(folder: Path, *messages: Stored) -> Path:
    path = folder / "ledger.db"
    write(path, messages)
    return path


def looked(path: Path, at: int = 0) -> Overview:
    return overview_at(path, at, {})


def on(topic: str, message: Stored) -> Stored:
    """Return a message as an event of another subject."""
    subject = ".".join((*message.subject.split(".")[:3], *topic.split(".")[1:]))
    return msgspec.structs.replace(message, subject=subject, headers={**message.headers, "ce-type": topic})


def test_an_exchange_whose_end_cannot_be_read_is_not_open(tmp_path: Path) -> None:
    path = ledger(
        tmp_path,
        *exchanges(2),
        stored(9, INPUT, exchange="y"),
        of_later_release(stored(10, RESPONSE, exchange="y", at_ms=40)),
    )
    seen = looked(path)
    assert (seen.exchanges, seen.open, seen.ended_unread) == (3, 0, 1)
    assert [each.count for each in seen.ended] == [2]
    assert looked(path, 9).open == 1, "it had not ended yet"
    latest = list_exchanges(path, ExchangeFilter(limit=1)).exchanges[0]
    assert (latest.exchange, latest.ended_seq, latest.stage, latest.action, latest.latency_ms) == (
        "y",
        10,
        "",
        "",
        40.0,
    )
    found = asyncio.run(exchange_result(path, "y"))
    assert found is not None
    assert (found.ended_seq, found.ended, found.latency_ms) == (10, None, 40.0)
    assert "response.emitted has version 2" in found.unread


def test_such_ends_are_searched_by_no_words_and_stop_no_search(tmp_path: Path) -> None:
    path = ledger(
        tmp_path, *exchanges(1), stored(5, INPUT, exchange="y"), of_later_release(stored(6, RESPONSE, exchange="y"))
    )
    found = list_exchanges(path, ExchangeFilter(words=RESPONSE.reason.lower()))
    assert [each.exchange for each in found.exchanges] == ["x0"]


@pytest.mark.parametrize("first", [0, 1])
def test_an_end_that_can_be_read_holds_whichever_comes_first(first: int, tmp_path: Path) -> None:
    ends = [stored(2 + first, RESPONSE), of_later_release(stored(3 - first, RESPONSE))]
    path = ledger(tmp_path, stored(1, INPUT), *sorted(ends, key=lambda each: each.seq))
    assert list_exchanges(path, ExchangeFilter()).exchanges[0].action == RESPONSE.action
    found = asyncio.run(exchange_result(path, "x1"))
    assert found is not None
    assert found.ended == RESPONSE


def test_an_exchange_whose_input_cannot_be_read_has_its_result(tmp_path: Path) -> None:
    path = ledger(tmp_path, of_later_release(stored(1, INPUT)), stored(2, RESPONSE))
    found = asyncio.run(exchange_result(path, "x1"))
    assert found is not None
    assert (found.agent, found.session, found.started_seq, found.ended) == ("ada", "s1", 1, RESPONSE)


def test_what_is_left_out_is_counted_by_subject_up_to_the_point(tmp_path: Path) -> None:
    messages = (
        stored(1, INPUT),
        of_later_release(stored(2, MODE)),
        of_later_release(stored(3, MODE)),
        of_later_release(alert(4)),
        on("forged_id.alert.critical.sentinel", alert(5)),
        on("forged_id.breaker.locked", stored(6, PASSED)),
        on("forged_id.sentinel.passed", stored(7, PASSED)),
        of_later_release(stored(8, PASSED)),
    )
    path = ledger(tmp_path, *messages)
    told = {each.topic: (each.count, each.last_seq) for each in looked(path).unread}
    assert told == {
        "forged_id.router.mode_selected": (2, 3),
        CATALOGUE[alert(4).headers["ce-type"]].topic: (1, 4),
        "forged_id.alert.critical.sentinel": (1, 5),
        "forged_id.breaker.locked": (1, 6),
    }, "no table has anything of the last two, whoever reads them"
    assert [each.count for each in looked(path, 2).unread] == [1]


def test_a_rebuild_finds_the_same(tmp_path: Path) -> None:
    path = ledger(
        tmp_path, *exchanges(1), of_later_release(stored(5, MODE)), on("forged_id.alert.info.sentinel", alert(6))
    )
    before = looked(path)
    with closing(sqlite3.connect(path)) as tampered, tampered:
        tampered.execute("DELETE FROM unread")
    assert not verify(path).ok
    rebuild(path)
    assert looked(path) == before
    assert verify(path).ok


def test_a_release_that_knows_more_subjects_folds_them_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    before = fingerprint()
    assert is_folded("forged_id.breaker.locked")
    assert not is_folded("forged_id.alert.configured"), "known, and in no table"
    fingerprint.cache_clear()
    monkeypatch.setattr("events.ledger.read_models._KNOWN", frozenset({"forged_id.breaker.locked"}))
    assert fingerprint() != before
    fingerprint.cache_clear()
