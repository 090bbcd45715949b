"""Lists of exchanges: the latest first, page by page, as of any point of the log."""

from pathlib import Path

import msgspec
import pytest

from events.errors import Misconfigured
from events.ledger import ExchangeFilter, Page, list_exchanges
from events.log import Stored
from schemas.intake.strict import BadInput
from tests.each import each
from tests.events.ledger.messages import INPUT, RESPONSE, stored, write

COUNT = 7


def listed(path: Path, **wanted: object) -> Page:
    return list_exchanges(path, msgspec.convert(wanted, ExchangeFilter))


def ids(page: Page) -> list[str]:
    return [each.exchange for each in page.exchanges]


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """Seven exchanges, of which each input is followed by the end of the one before; the last is open."""
    path, messages = tmp_path / "ledger.db", list[Stored]()
    for number in range(COUNT):
        messages.append(stored(2 * number + 1, INPUT, at_ms=10 * number, exchange=f"x{number}"))
        end = msgspec.structs.replace(RESPONSE, reason=f"r{number % 2}")
        if number < COUNT - 1:
            messages.append(stored(2 * number + 2, end, at_ms=10 * number + 4, exchange=f"x{number}"))
    write(path, messages)
    return path


def test_the_latest_comes_first_with_its_end_and_times(ledger: Path) -> None:
    page = listed(ledger)
    assert ids(page) == [f"x{number}" for number in reversed(range(COUNT))]
    assert (page.before, page.head) == (0, 2 * COUNT - 1)
    latest, ended = page.exchanges[:2]
    assert (latest.stage, latest.ended_seq, latest.latency_ms) == ("", 0, None)
    assert (ended.seq, ended.ended_seq, ended.stage, ended.latency_ms) == (11, 12, RESPONSE.stage, 4.0)
    assert ended.started.endswith(".050Z")


@each(("field", "near"), [("stage", "ARBITER"), ("action", "PASSED"), ("mode", "RESPOND")])
def test_a_value_that_no_exchange_can_have_is_refused_with_those_there_are(ledger: Path, field: str, near: str) -> None:
    with pytest.raises(BadInput, match=f"{field}: there is no {field} 'NOPE': there are .*{near}") as wrong:
        listed(ledger, **{field: "NOPE"})
    assert (wrong.value.field, wrong.value.code) == (field, "bad_value")
    assert all(getattr(each, field) == near for each in listed(ledger, **{field: near}).exchanges)


def test_pages_follow_each_other_without_a_gap_or_a_repeat(ledger: Path) -> None:
    found, before = list[str](), 0
    for _ in range(4):
        page = listed(ledger, limit=2, before=before)
        found, before = [*found, *ids(page)], page.before
    assert found == [f"x{number}" for number in reversed(range(COUNT))]
    assert before == 0


def test_at_a_point_nothing_behind_it_has_happened(ledger: Path) -> None:
    for at in range(1, 2 * COUNT):
        page = listed(ledger, at=at)
        assert all(each.seq <= at and each.ended_seq <= at for each in page.exchanges)
        assert len(page.exchanges) == (at + 1) // 2
        assert [each.exchange for each in page.exchanges if not each.ended_seq] == ([f"x{at // 2}"] if at % 2 else [])


def test_words_narrow_a_list_and_an_end_counts_from_where_it_stands(ledger: Path) -> None:
    assert ids(listed(ledger, reason="r1")) == ["x5", "x3", "x1"]
    assert ids(listed(ledger, reason="r1", at=11)) == ["x3", "x1"]
    assert ids(listed(ledger, agent="nobody")) == []
    assert len(listed(ledger, agent="ada", session="s1").exchanges) == COUNT


def test_where_there_is_no_ledger_that_is_said(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="no ledger is here"):
        listed(tmp_path / "none.db")


def test_a_place_behind_the_end_of_the_ledger_is_refused_and_its_end_named(ledger: Path) -> None:
    end = 2 * COUNT - 1
    assert listed(ledger, at=end) == listed(ledger, before=end + 1) == listed(ledger)
    for wanted in ({"at": end + 1}, {"before": end + 2}):
        with pytest.raises(BadInput, match=f"the ledger ends at sequence {end}, before {end + 1}") as wrong:
            listed(ledger, **wanted)
        assert (wrong.value.code, wrong.value.field) == ("beyond_end", next(iter(wanted)))


def told(stage: str, action: str, reason: str, mode: str) -> str:
    return f"It was {action.lower()} by the {'Odd' if reason == 'r1' else 'even'} one; {mode}."


def test_words_find_what_an_end_is_told_with_and_its_reason_by_name(ledger: Path) -> None:
    def found(words: str, **more: object) -> list[str]:
        return ids(list_exchanges(ledger, msgspec.convert({"words": words, **more}, ExchangeFilter), told))

    assert found("ONE odd") == found("r1") == ["x5", "x3", "x1"]
    assert found("even", at=3) == ["x0"]
    assert found("even", at=1) == [], "it had not ended so yet"
    assert found("odd even") == found("nowhere") == []
    assert len(found("one", limit=2)) == 2
    assert ids(listed(ledger, words="odd")) == [], "without phrases, reasons alone"
