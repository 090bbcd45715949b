"""Reading a ledger file, also while it is written to, or a copy of one."""

import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

import msgspec

from events.files.sqlite_side_files import write_ahead_log
from events.ledger.checking.chain import GENESIS, Head
from events.ledger.checking.recorded_losses import losses_in
from events.ledger.rows import (
    EXCHANGE,
    MESSAGE_COLUMNS,
    SEQ,
    batches,
    from_text,
    headers_naming,
    is_linked,
    to_row,
    to_stored,
    to_text,
)
from events.ledger.schema import connect_read_only, lacks_wal, read_meta
from events.ledger.sqlite_errors import DamagedRow, translated_errors
from events.log import Stored
from events.losses import Losses, merged_ranges
from schemas.catalogue import CATALOGUE, decode_event
from schemas.errors import UndecodableEvent, VocabularyError
from schemas.event import Event, topic_of
from schemas.subjects import EVERYTHING, Partitions
from schemas.vocabulary.gateway import InputReceived

S = TypeVar("S")

END = 2**63 - 1
"""A bound above every sequence and time."""

# Each page is a read transaction of its own: a long one would keep SQLite from making checkpoints of the writer's log.
_PAGE_ROWS = 16_384

_SUBJECT = 2
"""The index of the subject among ``MESSAGE_COLUMNS``."""

_LINKED_COLUMNS = f"{MESSAGE_COLUMNS}, hash"
_PREVIOUS = (
    f"ifnull((SELECT p.hash FROM events AS p WHERE p.seq < e.seq ORDER BY p.seq DESC LIMIT 1), x'{GENESIS.hex()}')"
)
"""SQL: the hash of the row before the row ``e``."""

_HEADERS_CONTAIN = "seq BETWEEN ? AND ? AND instr(headers, ?) > 0"
_SEARCHED_AROUND = 2_000
"""How many sequences around each of an exchange's rows are searched for rows whose column does not name it."""

_INPUT = topic_of(InputReceived).partition(".")[2]
"""The end of the stored subject of every input."""

_INPUTS_LOOKED_AT = 100
"""How many of the latest inputs are searched for one whose headers name its exchange."""


class LedgerInfo(msgspec.Struct, frozen=True):
    """A ledger's extent. Sequences and times (Unix nanoseconds) are 0 when it is empty.

    ``lacks_wal``: it was copied while it was written to, without the write-ahead log, so its last rows may be
    missing.
    """

    path: str
    format: int
    stream: str
    partitions: Partitions
    rows: int
    first_seq: int
    last_seq: int
    first_time_ns: int
    last_time_ns: int
    bytes: int
    lacks_wal: bool = False


class Folded(msgspec.Struct, Generic[S], frozen=True):
    """A fold's result: the state, the events folded, and the rows left out because they could not be decoded."""

    state: S
    events: int
    unreadable: int


# Reading columns and look-ups take half of the time of a fold's inner loop. So topic and version are read as one
# column, such as ``forged_id.reflex.passed@2`` (of version 1 the topic alone), and events of the current version skip
# the steps of decode_event. NULL stands for headers that could not be read.
_KIND = "iif(version = 1, topic, topic || '@' || version)"
_DECODERS: Mapping[str, Callable[[bytes], Event]] = {
    topic if entry.version == 1 else f"{topic}@{entry.version}": msgspec.json.Decoder(entry.event).decode
    for topic, entry in CATALOGUE.items()
}
_UNREADABLE = (VocabularyError, msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def _decode(kind: object, data: bytes) -> Event:
    if not isinstance(kind, str):
        raise UndecodableEvent("the headers are not readable, or name another topic")
    topic, _, version = kind.rpartition("@")
    return decode_event(topic, data, int(version)) if topic else decode_event(kind, data)


class Extent(msgspec.Struct, frozen=True):
    """The extent of a selection: its number of messages by stored subject, its first and last sequence (0: none)."""

    subjects: Mapping[str, int]
    first_seq: int
    last_seq: int

    @property
    def messages(self) -> int:
        """How many messages it has."""
        return sum(self.subjects.values())


def matcher(filters: Sequence[str]) -> Callable[[str], bool]:
    """Return a function: whether a subject matches any of these NATS filters (``*`` one token, ``>`` one or more)."""
    patterns = (
        r"\.".join("[^.]+" if token == "*" else ".+" if token == ">" else re.escape(token) for token in text.split("."))
        for text in filters
    )
    pattern = re.compile("|".join(f"(?:{text})" for text in patterns) or r"(?!)", re.DOTALL)
    # Cached: there are few subjects and many messages.
    return lru_cache(maxsize=65536)(lambda subject: pattern.fullmatch(subject) is not None)


class LedgerReader:
    """A ledger file that is open for reading. It streams, so memory does not grow. Use it in the thread that made it.

    Each row that is read is checked against its hash. ``verify`` checks the whole file.

    Attributes:
        checks: Whether rows are checked; False if another reader checks the same rows.

    Args:
        on_damage: Called with the sequence of a damaged row, which is then returned as it is; None: damage raises.

    Raises:
        Misconfigured: there is no such file, or its format is unknown to this release.
        LedgerDamaged: the file is no ledger, or is damaged where it was read. All methods raise this, too.
    """

    def __init__(self, path: Path, on_damage: Callable[[int], None] | None = None) -> None:
        """Open the file."""
        self.path = path
        self.checks = True
        self._on_damage = on_damage or _refuse
        self._connection = connect_read_only(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    @property
    def partitions(self) -> Partitions:
        """The partition counts of the stream that the ledger follows."""
        return read_meta(self._connection, self.path).partitions

    def info(self) -> LedgerInfo:
        """Return the ledger's extent."""
        meta = read_meta(self._connection, self.path)
        with translated_errors(self.path, "read the ledger"):
            edges = "SELECT seq, time FROM events ORDER BY seq {} LIMIT 1"
            first = self._connection.execute(edges.format("ASC")).fetchone() or (0, 0)
            last = self._connection.execute(edges.format("DESC")).fetchone() or (0, 0)
        files = (self.path, write_ahead_log(self.path))
        return LedgerInfo(
            path=str(self.path),
            format=meta.format,
            stream=meta.stream,
            partitions=meta.partitions,
            rows=meta.rows,
            first_seq=first[0],
            last_seq=last[0],
            first_time_ns=first[1],
            last_time_ns=last[1],
            bytes=sum(file.stat().st_size for file in files if file.exists()),
            lacks_wal=lacks_wal(meta, self.path),
        )

    def head(self) -> Head:
        """Return the chain's head."""
        with translated_errors(self.path, "read the ledger's head"):
            row = self._connection.execute(
                "SELECT seq, (SELECT value FROM meta WHERE key = 'rows'), hash FROM events ORDER BY seq DESC LIMIT 1"
            ).fetchone()
        return Head(0, 0, GENESIS) if row is None else Head(*row)

    def history(
        self, filters: Sequence[str] = (EVERYTHING,), after: int = 0, upto: int = END
    ) -> Iterator[Sequence[Stored]]:
        """Read the messages with ``after < seq <= upto`` whose stored subject matches any filter, in order."""
        rows = self._messages_between(after, upto)
        if EVERYTHING not in filters:
            matches = matcher(filters)
            # Filter before the headers are decoded: decoding takes most of the time.
            rows = (row for row in rows if matches(from_text(row[_SUBJECT])))
        with translated_errors(self.path, "read the ledger"):
            yield from batches(rows)

    def extent(self, filters: Sequence[str], upto: int = END, until_ns: int = END) -> Extent:
        """Count the messages that match any filter, up to a sequence and up to the first one stored after a time."""
        matches, found = matcher(filters), Counter[str]()
        first = last = 0
        with translated_errors(self.path, "read the ledger"):
            for seq, time_ns, text, _, _ in self._messages_between(0, upto):
                subject = from_text(text)
                if EVERYTHING in filters or matches(subject):
                    if time_ns > until_ns:
                        break
                    found[subject] += 1
                    first, last = first or seq, seq
        return Extent(found, first, last)

    def fold_bodies(self, step: Callable[[S, Event], S], state: S) -> Folded[S]:
        """Fold the typed events. The fastest way to read, if only bodies are needed."""
        events = unreadable = 0
        with translated_errors(self.path, "read the ledger"):
            for page in self._pages(f"{_KIND}, data", 0, END):
                for kind, data in page:
                    if type(data) is not bytes:
                        raise DamagedRow("a body does not hold the type that was written")
                    try:
                        decoder = _DECODERS.get(kind)
                        event = decoder(data) if decoder is not None else _decode(kind, data)
                    except _UNREADABLE:
                        unreadable += 1
                        continue
                    state = step(state, event)
                    events += 1
        return Folded(state, events, unreadable)

    def exchange(self, exchange: str, *, everywhere: bool = False, topics: Sequence[str] = ()) -> list[Stored]:
        """Return the messages of an exchange, in order; none when it is unknown.

        The hash chain does not cover the column ``exchange``. So rows near each of those that it names are read, too;
        not all between them, since feedback may come a month after the end. A row is damaged if its headers name the
        exchange and its column does not, or the other way round.

        Args:
            exchange: Its id.
            everywhere: Read every row of the file.
            topics: Return only messages of these; by default of all.
        """
        exchange_text = to_text(exchange)
        among = f" AND topic IN ({', '.join('?' * len(topics))})" if topics else ""
        by_column = self._messages(f"exchange = ? AND exchange <> ''{among} ORDER BY seq", exchange_text, *topics)
        around = merged_ranges((each.seq - _SEARCHED_AROUND, each.seq + _SEARCHED_AROUND) for each in by_column)
        name = headers_naming(exchange)
        by_headers = [
            stored
            for first, last in (((0, END),) if everywhere else around)
            for stored in self._messages(
                f"{_HEADERS_CONTAIN} AND exchange <> ?{among}", first, last, name, exchange_text, *topics
            )
        ]
        found = [stored for stored in (*by_column, *by_headers) if to_row(stored)[EXCHANGE] == exchange_text]
        for seq in {*(each.seq for each in by_column)}.symmetric_difference(each.seq for each in found):
            self._on_damage(seq)
        return sorted(found, key=lambda each: each.seq)

    def last_seq_of(self, exchange: str) -> int:
        """Return the sequence of an exchange's latest message, by the column; 0 when it is unknown."""
        with translated_errors(self.path, "read the ledger"):
            (last,) = self._connection.execute(
                "SELECT max(seq) FROM events WHERE exchange = ? AND exchange <> ''", (to_text(exchange),)
            ).fetchone()
        return last or 0

    def exchange_ids(self, prefix: str, most: int, *, everywhere: bool = False) -> list[str]:
        """Return the ids of exchanges that start with ``prefix``, in order, ``most`` of them at most.

        Args:
            prefix: The beginning of the ids.
            most: How many ids to return at most.
            everywhere: Read the headers of every row, not the column.
        """
        if everywhere:
            named = self._messages(f"{_HEADERS_CONTAIN} ORDER BY seq", 0, END, headers_naming(prefix).rstrip('"'))
            ids = {from_text(to_row(stored)[EXCHANGE]) for stored in named}
            return sorted(each for each in ids if each.startswith(prefix))[:most]
        with translated_errors(self.path, "read the ledger"):
            rows = self._connection.execute(
                "SELECT DISTINCT exchange FROM events WHERE exchange <> '' AND exchange >= ? AND exchange < ?"
                " ORDER BY exchange LIMIT ?",
                (to_text(prefix), to_text(prefix + chr(0x10FFFF)), most),
            )
            return [from_text(exchange) for (exchange,) in rows]

    def last_exchange(self) -> str | None:
        """Return the id of the exchange that began last, or None."""
        inputs = self._messages(f"subject GLOB 'log.*.{_INPUT}' ORDER BY seq DESC LIMIT {_INPUTS_LOOKED_AT}")
        ids = (from_text(to_row(stored)[EXCHANGE]) for stored in inputs)
        return next((each for each in ids if each), None)

    def at(self, seq: int) -> Stored | None:
        """Return the message of a sequence, or None."""
        return next(iter(self._messages("seq = ?", seq)), None)

    def last_upto(self, seq: int) -> Stored | None:
        """Return the last message up to a sequence, or None."""
        return next(iter(self._messages("seq <= ? ORDER BY seq DESC LIMIT 1", seq)), None)

    def first_matching(self, filters: Sequence[str], after: int, upto: int) -> Stored | None:
        """Return the first message with ``after < seq <= upto`` whose subject matches any filter, or None.

        SQLite looks for it, so that other rows are not read here, and not checked.
        """
        matches = matcher(filters)
        # A star of SQLite matches dots, too: what it finds is looked at again.
        globs = [each.replace(">", "*") for each in filters]
        found = " OR ".join("subject GLOB ?" for _ in globs)
        statement = f"SELECT seq, subject FROM events WHERE seq BETWEEN ? AND ? AND ({found}) ORDER BY seq"
        with translated_errors(self.path, "read the ledger"):
            rows = self._connection.execute(statement, (after + 1, upto, *globs))
            seq = next((seq for seq, subject in rows if matches(from_text(subject))), None)
        return None if seq is None else self.at(seq)

    def last_seq_upto(self, time_ns: int) -> int:
        """Return the sequence before the first row that was stored after a time (Unix nanoseconds); ``END`` if none."""
        if time_ns >= END:
            return END
        with translated_errors(self.path, "read the ledger"):
            later = self._connection.execute(
                "SELECT seq FROM events WHERE time > ? ORDER BY seq LIMIT 1", (max(time_ns, -END),)
            ).fetchone()
        return END if later is None else int(later[0]) - 1

    def losses(self) -> Losses:
        """Return what the log has recorded as lost."""
        with translated_errors(self.path, "read the recorded losses"):
            return losses_in(self._connection)

    def hash_at(self, seq: int) -> bytes | None:
        """Return the chain's hash after the row of a sequence, or None when there is no such row."""
        with translated_errors(self.path, "read the ledger"):
            row = self._connection.execute("SELECT hash FROM events WHERE seq = ?", (seq,)).fetchone()
        return None if row is None else bytes(row[0])

    def _messages(self, condition: str, *parameters: Any) -> list[Stored]:
        with translated_errors(self.path, "read the ledger"):
            rows = self._connection.execute(
                f"SELECT {_LINKED_COLUMNS}, {_PREVIOUS} FROM events AS e WHERE {condition}", parameters
            )
            return [to_stored(*self._checked(row[:-1], row[-1])) for row in rows]

    def _messages_between(self, after: int, upto: int) -> Iterator[tuple[Any, ...]]:
        """Read the ``MESSAGE_COLUMNS`` of rows, each checked."""
        before = self._connection.execute("SELECT hash FROM events WHERE seq <= ? ORDER BY seq DESC LIMIT 1", (after,))
        (previous,) = before.fetchone() or (GENESIS,)
        for page in self._pages(_LINKED_COLUMNS, after, upto):
            for row in page:
                yield self._checked(row, previous)
                previous = row[-1]

    def _checked(self, row: tuple[Any, ...], previous: object) -> tuple[Any, ...]:
        """Return a row without its hash, after checking the hash."""
        if self.checks and not is_linked(previous, *row):
            self._on_damage(row[SEQ])
        return row[:-1]

    def _pages(self, columns: str, after: int, upto: int) -> Iterator[sqlite3.Cursor]:
        statement = f"SELECT {columns} FROM events WHERE seq BETWEEN ? AND ? ORDER BY seq"
        first_after = "SELECT seq FROM events WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT 1"
        while (first := self._connection.execute(first_after, (after, upto)).fetchone()) is not None:
            after = min(first[0] + _PAGE_ROWS - 1, upto)
            yield self._connection.execute(statement, (first[0], after))


def _refuse(seq: int) -> None:
    raise DamagedRow(f"row {seq} is not what was written: its hash says so; `neuraxis log verify` lists what differs")
