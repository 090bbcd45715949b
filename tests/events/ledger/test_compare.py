"""Holding a ledger against its stream."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pytest

from events.ledger import Check, Comparison, LedgerReader, compare
from events.log import Append, Record, Stored
from tests.events.ledger.messages import anchor, exchanges, query, write
from tests.simulated import SimulatedConnection, SimulatedLog, SimulatedStream


def compared(path: Path, messages: Sequence[Stored], kept: Callable[[list[Stored]], list[Stored]]) -> Comparison:
    """Put messages into a stream, and what ``kept`` leaves of what it stored into a ledger; compare the two."""

    async def main() -> tuple[SimulatedLog, list[Stored]]:
        ticks = iter(range(10**9))
        stream = SimulatedStream(clock=lambda: 10**18 + next(ticks))
        log = SimulatedLog(SimulatedConnection(stream))
        await log.append([Append([Record(each.subject, each.headers, each.data) for each in messages])])
        return log, list(stream.store.messages)

    log, stored = asyncio.run(main())
    write(path, kept(stored))
    return asyncio.run(compare(path, log))


def found(report: Comparison) -> list[tuple[int, Check]]:
    return [(finding.seq, finding.check) for finding in report.findings]


def test_a_ledger_of_the_whole_stream_is_equal(tmp_path: Path) -> None:
    report = compared(tmp_path / "ledger.db", exchanges(5), lambda messages: messages)
    assert report.ok
    assert (report.compared, report.behind, report.last_seq, report.stream_last_seq) == (20, 0, 20, 20)


def test_a_ledger_that_is_behind_is_no_finding(tmp_path: Path) -> None:
    report = compared(tmp_path / "ledger.db", exchanges(5), lambda messages: messages[:13])
    assert report.ok
    assert (report.compared, report.behind) == (13, 7)


def test_a_tail_cut_behind_an_anchor_is_a_finding(tmp_path: Path) -> None:
    messages = [*exchanges(5), anchor(21, 20, 20, "0" * 64)]
    report = compared(tmp_path / "ledger.db", messages, lambda messages: messages[:13])
    assert found(report) == [(21, Check.TAIL_CUT)]
    assert "row 20; the file ends at 13" in report.findings[0].detail


def test_an_anchor_in_the_stream_exposes_a_chain_rewritten_whole(tmp_path: Path) -> None:
    honest = tmp_path / "honest.db"
    compared(honest, exchanges(2), lambda messages: messages)
    with LedgerReader(honest) as reader:
        head = reader.head()
    messages = [*exchanges(2), anchor(9, 8, 8, head.hash.hex())]

    def rewrite(stored: list[Stored]) -> list[Stored]:
        return [msgspec.structs.replace(stored[0], data=b"{}"), *stored[1:]]

    assert compared(tmp_path / "same.db", messages, lambda stored: stored).ok
    report = compared(tmp_path / "ledger.db", messages, rewrite)
    assert found(report) == [(1, Check.DIFFERS), (9, Check.ANCHOR)]


@pytest.mark.parametrize(
    "change",
    [{"data": b"{}"}, {"time_ns": 1}, {"subject": "log.00.00.input.received"}, {"headers": {}}],
    ids=lambda change: next(iter(change)),
)
def test_any_difference_is_named(change: dict[str, object], tmp_path: Path) -> None:
    def kept(messages: list[Stored]) -> list[Stored]:
        return [*messages[:3], msgspec.structs.replace(messages[3], **change), *messages[4:]]

    report = compared(tmp_path / "ledger.db", exchanges(2), kept)
    assert found(report) == [(4, Check.DIFFERS)]
    assert report.findings[0].detail == f"{next(iter(change))} differ"


def test_rows_that_the_ledger_lacks_are_findings(tmp_path: Path) -> None:
    report = compared(tmp_path / "ledger.db", exchanges(3), lambda messages: [*messages[:4], *messages[6:]])
    assert found(report) == [(5, Check.MISSING_IN_LEDGER), (6, Check.MISSING_IN_LEDGER)]


def test_rows_that_the_stream_lacks_are_findings(tmp_path: Path) -> None:
    more = exchanges(4)
    report = compared(tmp_path / "ledger.db", exchanges(3), lambda messages: [*messages, *more[12:]])
    assert found(report) == [(16, Check.MISSING_IN_STREAM)]
    assert report.findings[0].detail == "the stream ends at 12, the ledger at 16"


def test_an_altered_row_is_found_without_the_chain(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"

    def kept(messages: list[Stored]) -> list[Stored]:
        write(path, messages)
        query(path, "UPDATE events SET data = x'00' WHERE seq = 2")
        return []

    assert found(compared(path, exchanges(1), kept)) == [(2, Check.DIFFERS)]
