"""Reading: ranges, filters, look-ups, beside a live writer and of a lone copy."""

import asyncio
import resource
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from events.errors import Unavailable
from events.ledger import LedgerReader, LedgerWriter
from events.ledger.reader import matcher
from events.log import Stored
from schemas.event import topic_of
from schemas.vocabulary.gateway import InputReceived
from tests.events.ledger.messages import FEEDBACK, PARTITIONS, START_NS, STREAM, exchanges, read, stored, write
from tests.events.ledger.messages import PASSED as EVENT
from tests.simulated.store import matches

MESSAGES = exchanges(50)


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ledger") / "ledger.db"
    write(path, MESSAGES)
    return path


tokens = st.sampled_from(["log", "00", "01", "reflex", "passed", "a+b", "x"])
subjects = st.lists(tokens, min_size=1, max_size=5).map(".".join)
filters = st.tuples(st.lists(tokens | st.just("*"), min_size=1, max_size=4), st.booleans()).map(
    lambda drawn: ".".join([*drawn[0], *([">"] if drawn[1] else [])])
)


@given(wanted=st.lists(filters, max_size=3), subject=subjects)
def test_filters_match_as_the_streams_do(wanted: list[str], subject: str) -> None:
    assert matcher(wanted)(subject) == any(matches(each, subject) for each in wanted)


@given(after=st.integers(-1, 210), upto=st.integers(0, 210))
def test_a_history_holds_its_range_and_no_more(after: int, upto: int, ledger: Path) -> None:
    with LedgerReader(ledger) as reader:
        found = [message for batch in reader.history(after=after, upto=upto) for message in batch]
    assert found == [message for message in MESSAGES if after < message.seq <= upto]


def test_a_history_holds_what_its_filters_match(ledger: Path) -> None:
    with LedgerReader(ledger) as reader:
        found = [message for batch in reader.history(["log.*.*.input.>", "log.*.*.response.*"]) for message in batch]
    assert found == [message for message in MESSAGES if message.seq % 4 in (1, 0)]


def test_a_long_history_comes_in_batches_bounded_in_bytes(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    write(path, [Stored(seq, seq, "log.00.00.input.received", {}, bytes(1_000_000)) for seq in range(1, 13)])
    with LedgerReader(path) as reader:
        sizes = [len(batch) for batch in reader.history()]
    assert sum(sizes) == 12
    assert max(sizes) <= 5


def test_an_exchange_and_a_sequence_can_be_looked_up(ledger: Path) -> None:
    with LedgerReader(ledger) as reader:
        assert reader.exchange("x7") == MESSAGES[28:32]
        assert reader.exchange("unknown") == []
        assert reader.at(78) == MESSAGES[77]
        assert reader.at(0) is None
        assert reader.hash_at(200) == reader.head().hash
        assert reader.hash_at(201) is None


def test_looking_up_an_exchange_uses_its_index(ledger: Path) -> None:
    with LedgerReader(ledger) as reader:
        plan = reader._connection.execute(
            "EXPLAIN QUERY PLAN SELECT seq FROM events WHERE exchange = ? AND exchange <> '' ORDER BY seq", ("x",)
        ).fetchall()
    assert "events_exchange" in plan[0][3]


def test_the_extent_is_told(ledger: Path) -> None:
    with LedgerReader(ledger) as reader:
        info = reader.info()
        assert reader.partitions == PARTITIONS
    assert (info.stream, info.format, info.partitions) == (STREAM, 1, PARTITIONS)
    assert (info.rows, info.first_seq, info.last_seq) == (200, 1, 200)
    assert (info.first_time_ns, info.last_time_ns) == (START_NS + 10_000_000, START_NS + 2_000_000_000)
    assert info.bytes == ledger.stat().st_size


def test_a_part_is_told_by_subject(ledger: Path) -> None:
    with LedgerReader(ledger) as reader:
        part = reader.extent(["log.*.*.input.>"], upto=9)
        early = reader.extent(["log.>"], until_ns=START_NS + 70_000_000)
        none = reader.extent(["log.*.*.clock.>"])
    assert (part.messages, part.first_seq, part.last_seq) == (3, 1, 9)
    assert set(part.subjects) == {MESSAGES[0].subject}
    assert (early.messages, early.first_seq, early.last_seq) == (7, 1, 7)
    assert (none.messages, none.first_seq, none.last_seq) == (0, 0, 0)


def test_an_empty_ledger_reads_as_empty(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    write(path, [stored(1, EVENT)][:0], size=1)
    with LedgerReader(path) as reader:
        assert list(reader.history()) == []
        assert reader.info().last_seq == 0
        assert reader.head().rows == 0


def test_a_reader_sees_what_a_live_writer_commits(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"

    async def main() -> None:
        async with await LedgerWriter.open(path, STREAM, PARTITIONS) as writer:
            await writer.append(MESSAGES[:10])
            with LedgerReader(path) as reader:
                assert reader.head().rows == 10
                await writer.append(MESSAGES[10:20])
                assert reader.head().rows == 20
                assert [message for batch in reader.history() for message in batch] == MESSAGES[:20]

    asyncio.run(main())


def test_an_abandoned_reading_does_not_disturb(ledger: Path) -> None:
    with LedgerReader(ledger) as reader:
        history = reader.history()
        next(history)
    history.close()  # type: ignore[attr-defined]  # an iterator to its users, a generator in fact


def test_a_copy_without_its_log_is_a_whole_ledger(ledger: Path, tmp_path: Path) -> None:
    shutil.copyfile(ledger, tmp_path / "copy.db")
    assert read(tmp_path / "copy.db") == MESSAGES


def test_a_copy_that_may_not_be_written_can_be_read(ledger: Path, tmp_path: Path) -> None:
    folder = tmp_path / "archive"
    folder.mkdir()
    shutil.copyfile(ledger, folder / "ledger.db")
    (folder / "ledger.db").chmod(0o444)
    folder.chmod(0o555)
    try:
        assert read(folder / "ledger.db") == MESSAGES
    finally:
        folder.chmod(0o755)


def test_a_process_without_a_descriptor_left_does_not_blame_the_folder(ledger: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, before[1]))
    try:
        with pytest.raises(Unavailable, match="this process has run out of open files"), LedgerReader(ledger):
            pass
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_a_path_may_hold_any_character(tmp_path: Path) -> None:
    path = tmp_path / "100% böse?mode=rw#1.db"
    write(path, MESSAGES[:4])
    assert read(path) == MESSAGES[:4]
    assert all(file.name.startswith(path.name) for file in tmp_path.iterdir())


def test_late_feedback_does_not_have_all_rows_between_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, others = tmp_path / "ledger.db", exchanges(3_000)
    last = others[-1].seq + 1
    write(path, [*others, stored(last, FEEDBACK, exchange="x0")])
    monkeypatch.setattr("events.ledger.reader._SEARCHED_AROUND", 10)
    with LedgerReader(path) as reader:
        steps = [0]

        def count() -> None:
            steps[0] += 1

        reader._connection.set_progress_handler(count, 100)
        assert [each.seq for each in reader.exchange("x0")] == [1, 2, 3, 4, last]
        assert [each.seq for each in reader.exchange("x0", topics=(topic_of(InputReceived),))] == [1]
        assert (reader.last_seq_of("x0"), reader.last_seq_of("made-up"), reader.last_seq_of("")) == (last, 0, 0)
        assert steps[0] < 100, "the work of 10,000 rows"
