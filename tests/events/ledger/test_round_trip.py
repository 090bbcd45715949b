"""Whatever the stream holds, the ledger gives back exactly."""

import tempfile
from pathlib import Path

from hypothesis import given, settings

from events.decoding import Recorded, Unreadable, decode
from events.ledger import Check, LedgerReader, verify
from events.ledger.rows import topic_of_subject
from events.log import Stored
from schemas.event import Event
from tests.events.ledger.messages import INPUT, PASSED, query, read, stored, wild_messages, write


@given(wild_messages())
@settings(max_examples=150, deadline=None)
def test_any_message_comes_back_as_it_was_stored(messages: list[Stored]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.db"
        write(path, messages, size=3)
        assert read(path) == messages
        # Sequences that are not next to each other are gaps; nothing else may be found.
        assert {finding.check for finding in verify(path).findings} <= {Check.GAP}


@given(wild_messages())
@settings(max_examples=50, deadline=None)
def test_the_quick_reading_agrees_with_the_codec(messages: list[Stored]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.db"
        write(path, messages)
        # The codec is for messages on stored subjects alone: the stream takes no others.
        proper = [message for message in messages if topic_of_subject(message.subject)]
        readable = [each.message for each in map(decode, proper) if isinstance(each, Recorded)]
        with LedgerReader(path) as reader:
            nothing: tuple[Event, ...] = ()
            folded = reader.fold_bodies(lambda events, event: (*events, event), nothing)
        assert folded.state == tuple(message.event for message in readable)
        assert folded.unreadable == len(messages) - len(readable)


def test_large_bodies_survive(tmp_path: Path) -> None:
    large = Stored(1, 1, "log.00.00.input.received", {}, bytes(range(256)) * 4096)
    write(tmp_path / "ledger.db", [large])
    assert read(tmp_path / "ledger.db") == [large]


def test_an_unreadable_message_is_stored_with_empty_columns(tmp_path: Path) -> None:
    unreadable = Stored(1, 7, "log.00.00.input.received", {"ce-id": "a"}, b"\xff{")
    assert isinstance(decode(unreadable), Unreadable)
    write(tmp_path / "ledger.db", [unreadable])
    found = query(tmp_path / "ledger.db", "SELECT id, topic, agent, session, exchange, cause_seq, version FROM events")
    assert found == [("", "forged_id.input.received", "", "", "", 0, None)]


def test_a_message_under_another_topics_name_is_unreadable(tmp_path: Path) -> None:
    other = stored(1, PASSED)
    liar = Stored(1, other.time_ns, stored(1, INPUT).subject, other.headers, other.data)
    write(tmp_path / "ledger.db", [liar])
    with LedgerReader(tmp_path / "ledger.db") as reader:
        assert reader.fold_bodies(lambda count, _: count + 1, 0).unreadable == 1


def test_columns_hold_the_envelope(tmp_path: Path) -> None:
    message = stored(9, INPUT, exchange="é x", agent="ada", session="s 1")
    write(tmp_path / "ledger.db", [message])
    columns = "seq, id, topic, subject, agent, session, exchange, cause_seq, version, time, data"
    assert query(tmp_path / "ledger.db", f"SELECT {columns} FROM events") == [
        (
            9,
            message.headers["ce-id"],
            "forged_id.input.received",
            message.subject,
            "ada",
            "s 1",
            "é x",
            8,
            1,
            message.time_ns,
            message.data,
        )
    ]
