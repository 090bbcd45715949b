"""A ledger with damaged rows: whoever reads one of them is told, and nobody reads more for that."""

import json
from pathlib import Path

import pytest

from events.log import Stored
from tests.deploy.cli.logs.test_nothing_there import READING, fails, in_a_folder, ledger, neuraxis, talk
from tests.each import each
from tests.events.ledger.messages import query

__all__ = ["in_a_folder", "ledger", "talk"]

DAMAGED = "is damaged: row {:,} is not what was written"


def rot(ledger: Path, seq: int, column: str = "data") -> None:
    """Change a row in one column, so that it can be read all the same."""
    changed = {
        "data": "CAST(replace(CAST(data AS TEXT), ':', ': ') AS BLOB)",
        "headers": "replace(headers, 'ce-time\":\"2', 'ce-time\":\"3')",
        "hash": "zeroblob(32)",
        "time": "time + 1",
        "subject": "subject || 'x'",
    }
    query(ledger, f"UPDATE events SET {column} = {changed[column]} WHERE seq = ?", seq)


@each("command", [each for each in READING if each[:2] not in {("log", "verify"), ("log", "rebuild")}], named=" ".join)
def test_every_command_says_that_rows_which_it_reads_are_not_what_was_written(
    command: tuple[str, ...], ledger: Path
) -> None:
    query(ledger, "UPDATE events SET hash = zeroblob(32)")
    result = neuraxis(*command, ledger)
    assert any(told in result.stderr for told in ("is damaged", "not sound", "not those")), result.output


@pytest.mark.parametrize("column", ["data", "headers", "hash", "time", "subject"])
def test_a_row_that_differs_is_told_by_whoever_reads_its_row(column: str, ledger: Path, talk: list[Stored]) -> None:
    stored = talk[len(talk) // 2]
    rot(ledger, stored.seq, column)
    for command in (("log", "tail", "--since", "1"), ("log", "info")):
        result = neuraxis(*command, "--log", ledger)
        assert f"{stored.seq:,}" in result.stderr, result.output


def test_what_is_not_read_costs_nothing_and_is_not_told(ledger: Path, talk: list[Stored]) -> None:
    rot(ledger, 1)
    last = neuraxis("why", "last", "--log", ledger)
    assert (last.exit_code, last.stderr) == (0, "")
    begun = next(stored for stored in talk if stored.headers.get("ce-exchange"))
    rot(ledger, begun.seq)
    first = neuraxis("why", begun.headers["ce-exchange"], "--log", ledger)
    assert DAMAGED.format(begun.seq) in first.stderr


def test_decisions_are_not_verified_over_damaged_rows_even_if_all_come_out_as_recorded(
    ledger: Path, talk: list[Stored]
) -> None:
    rot(ledger, len(talk))
    fails(neuraxis("replay", "--verify", "--log", ledger), DAMAGED.format(len(talk)))
    shown = neuraxis("replay", "--verify", "--json", "--log", ledger)
    assert not json.loads(shown.stdout.splitlines()[0])["clean"]


@pytest.mark.parametrize("form", ["jsonl", "bundle"])
def test_a_copy_does_not_vouch_for_damaged_rows(form: str, ledger: Path, talk: list[Stored]) -> None:
    rot(ledger, len(talk) // 2)
    result = neuraxis("log", "export", "--format", form, "-o", "out", "--log", ledger)
    fails(result, "not exported")
    assert not Path("out").exists()


def test_a_missing_row_is_told_by_who_reads_past_its_place(ledger: Path) -> None:
    query(ledger, "DELETE FROM events WHERE seq = 9")
    result = neuraxis("log", "info", "--log", ledger)
    assert DAMAGED.format(10) in result.stderr
    assert "it notes 1 more than it holds" in result.stderr


def test_a_missing_end_is_told_by_who_counts(ledger: Path, talk: list[Stored]) -> None:
    query(ledger, "DELETE FROM events WHERE seq > ?", len(talk) - 3)
    assert "it notes 3 more than it holds" in neuraxis("log", "info", "--log", ledger).stderr


@pytest.mark.parametrize("place", ["first", "second", "last"])
@pytest.mark.parametrize("said", ["", "another"], ids=["emptied", "another's"])
def test_a_row_whose_column_names_no_more_its_exchange_is_shown_with_it_and_told(
    place: str, said: str, ledger: Path, talk: list[Stored]
) -> None:
    exchange = talk[-1].headers["ce-exchange"]
    own = [stored.seq for stored in talk if stored.headers.get("ce-exchange") == exchange]
    seq = own[{"first": 0, "second": 1, "last": -1}[place]]
    query(ledger, "UPDATE events SET exchange = ? WHERE seq = ?", said, seq)
    for name in (exchange, exchange[:20], "last"):
        result = neuraxis("why", name, "--log", ledger)
        assert f"sequence {seq}" in result.stdout, result.output
        assert "causal chain: complete" in result.stdout
        assert DAMAGED.format(seq) in result.stderr


def test_an_exchange_that_no_column_names_any_more_is_found(ledger: Path, talk: list[Stored]) -> None:
    exchange = talk[-1].headers["ce-exchange"]
    query(ledger, "UPDATE events SET exchange = '' WHERE exchange = ?", exchange)
    for name in (exchange, exchange[:20], "last"):
        result = neuraxis("why", name, "--log", ledger)
        assert "causal chain: complete" in result.stdout, result.output
        assert "rows, the first" in result.stderr


def test_a_row_is_no_part_of_an_exchange_that_its_column_alone_names(ledger: Path, talk: list[Stored]) -> None:
    exchange = talk[-1].headers["ce-exchange"]
    query(ledger, "UPDATE events SET exchange = ? WHERE seq = 1", exchange)
    result = neuraxis("why", exchange, "--log", ledger)
    assert "configured" not in result.stdout
    assert DAMAGED.format(1) in result.stderr
