"""Sources of recorded events: a ledger file, a bundle, or the live stream, behind one interface."""

from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from urllib.parse import unquote

from events.ledger import Extent, LedgerReader
from events.ledger.reader import END, matcher
from events.ledger.rows import topic_of_subject
from events.log import LogInfo, Seal, Stored
from events.losses import Losses, merged_ranges
from events.replay.damage import Damage
from events.replay.gaps import Gaps
from events.replay.merged_readings import merged_by_seq
from events.replay.readable_file import ledger_file
from events.replay.unread_events import UnreadEvents
from events.sealing.sealing import Sealing, closed_sealing
from schemas.envelope import exchange_in
from schemas.event import topic_of
from schemas.subjects import EVERYTHING, NO_PARTITION, Partitions, split_stored, topic_filter
from schemas.vocabulary.gateway import InputReceived

if TYPE_CHECKING:
    # A ledger file is read without the broker's client.
    from events.jetstream import JetStreamLog

_INPUTS = topic_filter(topic_of(InputReceived))

_MOST_FILTERED_READS = 4
"""Most filters that are read separately; with more, the stream is read without filters."""

MOST_READ_WHOLE = 200_000
"""Most sequences of a range that is read without filters: it takes under two seconds, and shows every gap."""

_SEARCHED_AROUND = 1_000
"""How many sequences before and after the events found of an exchange are searched for gaps."""


class Source(Protocol):
    """Recorded events, in order.

    Attributes:
        name: What it is, for people.
        partitions: The partition counts of the log.
        stream: The name of the stream that the events were appended to.
        sealing: What opens people's words, if their keys can be reached.
        damage: The damaged rows that were read.
        gaps: The ranges that were read, and the sequences found missing in them.
        unread: The events that were left out of what its readers show.
    """

    name: str
    partitions: Partitions
    stream: str
    sealing: Sealing
    damage: Damage
    gaps: Gaps
    unread: UnreadEvents

    async def losses(self) -> Losses:
        """Return what the log has recorded as lost."""

    async def info(self) -> LogInfo:
        """Return its extent."""

    def recorded_head(self, seq: int) -> bytes | None:
        """Return the recorded head of the hash chain after a sequence; None if none was recorded."""

    def history(self, filters: Sequence[str], after: int, upto: int) -> AsyncIterator[Sequence[Stored]]:
        """Read the messages with ``after < seq <= upto`` that match any filter, in order."""

    def as_stored(self, filters: Sequence[str], after: int, upto: int) -> AsyncIterator[Sequence[Stored]]:
        """Read the same messages as they are stored, without opening sealed words."""

    async def first(self, filters: Sequence[str], after: int, upto: int) -> Stored | None:
        """Return the first message of a range that matches any filter, as it is stored, or None."""

    async def counts(self) -> dict[str, int]:
        """Return the number of events of each public subject, the most frequent first."""

    async def exchange_ids(self, prefix: str, most: int) -> list[str]:
        """Return the ids of exchanges that start with ``prefix``, ``most`` of them at most."""

    async def last_exchange(self) -> str | None:
        """Return the id of the exchange that began last, or None."""

    async def exchange(self, exchange: str) -> list[Stored]:
        """Return the messages of an exchange, in order; none when it is unknown."""


class LedgerSource:
    """A ledger file, open for reading.

    Attributes:
        file: The ledger file; for a bundle an unpacked copy, which is deleted on close.
        sealing: What opens people's words where the file holds them sealed; without keys, a placeholder stands for
            them.
        lacks_wal: The file was copied while a set wrote to it, without the write-ahead log beside it: its last rows
            may be missing.
        keeps_snapshots: Whether snapshots of states may be kept beside the file (``events.replay.states``).
        met_sealed: Whether an event with sealed words was read.
        unreached: Why the log that this ledger is a copy of cannot be read, although nobody has stopped its set; empty
            otherwise, or if that is not known.
    """

    def __init__(self, path: Path, sealing: Sealing | None = None) -> None:
        """Open the file, which may be a bundle; raises as ``LedgerReader`` and ``unpack`` do."""
        self._resources = ExitStack()
        self.damage = Damage()
        self.gaps = Gaps()
        self.unread = UnreadEvents()
        self.unreached = ""
        try:
            file = self._resources.enter_context(ledger_file(path))
            self.file = file
            self.keeps_snapshots, self.met_sealed = file == path, False
            self._reader = self._resources.enter_context(LedgerReader(file, self.damage.note))
            self.sealing = sealing or closed_sealing()
            self.name = f"{'ledger' if file == path else 'bundle'} {path}"
            self.partitions = self._reader.partitions
            info = self._reader.info()
            self.stream, self.lacks_wal = info.stream, info.lacks_wal
        except BaseException:
            self._resources.close()
            raise

    def close(self) -> None:
        """Close the file."""
        self._resources.close()

    async def as_stored(self, filters: Sequence[str], after: int, upto: int) -> AsyncIterator[Sequence[Stored]]:
        """Read a range as it is stored, without opening sealed words; otherwise as ``history``."""
        for batch in self._reader.history(filters, after, upto):
            self.gaps.note_read(after, batch[-1].seq)
            yield batch
        self.gaps.note_read(after, min(upto, self._reader.head().seq))

    def at(self, seq: int) -> Stored | None:
        """Return the message of a sequence as it is stored, or None."""
        return self._reader.at(seq)

    def recorded_head(self, seq: int) -> bytes | None:
        """Return the head as the file has it; see ``Source``."""
        return self._reader.hash_at(seq)

    async def info(self) -> LogInfo:
        """Return the file's extent."""
        info = self._reader.info()
        return LogInfo(info.partitions, info.first_seq, info.last_seq, info.rows, info.bytes)

    async def history(self, filters: Sequence[str], after: int, upto: int) -> AsyncIterator[Sequence[Stored]]:
        """Read a range; see ``Source``."""
        async for batch in self.as_stored(filters, after, upto):
            opened = await self.sealing.open(batch)
            self.met_sealed = self.met_sealed or any(stored.seal is not Seal.AS_STORED for stored in opened)
            yield opened

    def last_seq_upto(self, time_ns: int) -> int:
        """Return the sequence before the first row that was stored after a time (Unix nanoseconds)."""
        return self._reader.last_seq_upto(time_ns)

    async def losses(self) -> Losses:
        """Return the recorded losses; see ``Source``."""
        return self._reader.losses()

    def extent(self, filters: Sequence[str], upto: int, until_ns: int) -> Extent:
        """Count the messages of a range by stored subject; see ``LedgerReader``."""
        self.gaps.note_read(0, min(upto, self._reader.head().seq))
        return self._reader.extent(filters, upto, until_ns)

    async def first(self, filters: Sequence[str], after: int, upto: int) -> Stored | None:
        """Look up the message by SQLite; see ``Source``."""
        return self._reader.first_matching(filters, after, upto)

    async def counts(self) -> dict[str, int]:
        """Count by subject; see ``Source``. Every row is read, so that damage is noticed."""
        before = self._reader.info()
        extent = self.extent([EVERYTHING], before.last_seq, END)
        # A writer may be adding rows: its row count was at most this before, and is at least this afterwards.
        after = self._reader.info()
        self.damage.missing = max(0, before.rows - extent.messages) or min(0, after.rows - extent.messages)
        return _by_topic(extent.subjects)

    def skip_checks(self) -> None:
        """Read rows without checking their hashes, since another source of this file checks them."""
        self._reader.checks = False

    async def exchange_ids(self, prefix: str, most: int) -> list[str]:
        """Look up ids of exchanges; see ``Source``."""
        return self._reader.exchange_ids(prefix, most) or self._reader.exchange_ids(prefix, most, everywhere=True)

    async def last_exchange(self) -> str | None:
        """Look up the latest exchange; see ``Source``."""
        return self._reader.last_exchange()

    async def exchange(self, exchange: str) -> list[Stored]:
        """Look up an exchange; see ``Source``."""
        found = self._reader.exchange(exchange) or self._reader.exchange(exchange, everywhere=True)
        if found:
            self.gaps.note_read(*_range_around(found, self._reader.head().seq))
        return list(await self.sealing.open(found))


class StreamSource:
    """The live stream. It has no index over exchanges: looking one up reads the log's inputs."""

    def __init__(self, log: "JetStreamLog") -> None:
        self.log = log
        self.name = f"stream {log.stream} at {log.connection.access.servers}"
        self.partitions = log.partitions
        self.stream = log.stream
        self.sealing = log.sealing or closed_sealing()
        self.damage = Damage()
        self.gaps = Gaps()
        self.unread = UnreadEvents()

    async def as_stored(self, filters: Sequence[str], after: int, upto: int) -> AsyncIterator[Sequence[Stored]]:
        """Read a range as it is stored, words sealed where they are; otherwise as ``history``.

        With several filters, the broker may skip readable messages before a gap that was not recorded (see
        ``events.jetstream.reading.stream_reader``), and no filtered reading shows a gap. So everything is read and
        filtered here. Only of a long stream a few filters are read separately; there, only recorded gaps are known.
        """
        end = min(upto, (await self.info()).last_seq)
        whole = EVERYTHING in filters or len(filters) > _MOST_FILTERED_READS or end - after <= MOST_READ_WHOLE
        readings = [self._stored(each, after, end) for each in ([EVERYTHING] if whole else filters)]
        matches, reached = matcher(filters), after
        async for batch in merged_by_seq(readings):
            if whole:
                self.gaps.note_gaps_in(reached, batch)
            reached = batch[-1].seq
            self.gaps.note_read(after, reached)
            if wanted := [stored for stored in batch if matches(stored.subject)]:
                yield wanted
        if whole:
            self.gaps.note_missing(reached + 1, end)
        self.gaps.note_read(after, end)

    def _stored(self, filter: str, after: int, upto: int) -> AsyncIterator[Sequence[Stored]]:
        return self.log.as_stored().history([filter], after, upto)

    def recorded_head(self, seq: int) -> bytes | None:
        """Return nothing: a stream keeps no chain; see ``Source``."""
        return None

    async def info(self) -> LogInfo:
        """Return the stream's extent."""
        return await self.log.info()

    async def history(self, filters: Sequence[str], after: int, upto: int) -> AsyncIterator[Sequence[Stored]]:
        """Read a range; see ``Source``, and :meth:`as_stored`."""
        async for batch in self.as_stored(filters, after, upto):
            yield await self.sealing.open(batch)

    async def losses(self) -> Losses:
        """Return the recorded losses; see ``Source``."""
        return await self.log.losses()

    async def first(self, filters: Sequence[str], after: int, upto: int) -> Stored | None:
        """Read up to the message; see ``Source``."""
        async for batch in self.as_stored(filters, after, upto):
            return batch[0]
        return None

    async def counts(self) -> dict[str, int]:
        """Ask the broker for its counts by subject; see ``Source``. It also counts unreadable messages."""
        self.gaps.note_read(0, (await self.info()).last_seq)
        return _by_topic(await self.log.subject_counts())

    async def exchange_ids(self, prefix: str, most: int) -> list[str]:
        """Look up ids of exchanges; see ``Source``."""
        return await _ids(self._inputs(), prefix, most) or await _ids(self._everything(), prefix, most)

    async def last_exchange(self) -> str | None:
        """Look up the latest exchange; see ``Source``."""
        last = await self.log.last(_INPUTS)
        async for batch in self._stored(_INPUTS, max(0, last - 1), last):
            return exchange_of(batch[-1]) or None
        # The broker reports no last message for a subject whose last message cannot be read.
        latest = None
        async for stored in self._inputs():
            latest = exchange_of(stored) or latest
        return latest

    async def exchange(self, exchange: str, begin: int = 0, within: Sequence[tuple[int, int]] = ()) -> list[Stored]:
        """Look up an exchange; see ``Source``.

        Args:
            exchange: Its id.
            begin: The sequence of its input, if it is known.
            within: If that is known, the ranges (after, up to) that hold its events, in order; by default all behind
                its input.
        """
        if begin:
            async for batch in self._stored(_INPUTS, begin - 1, begin):
                if exchange_of(batch[0]) == exchange:
                    return await self._from(batch[0], exchange, within)
        async for stored in self._inputs():
            if exchange_of(stored) == exchange:
                return await self._from(stored, exchange)
        # Its input may be lost while its other events exist.
        async for stored in self._everything():
            if exchange_of(stored) == exchange:
                return await self._from(stored, exchange)
        return []

    async def _from(self, first: Stored, exchange: str, within: Sequence[tuple[int, int]] = ()) -> list[Stored]:
        last = (await self.info()).last_seq
        filters = _filters_from(first, self.partitions)
        found: list[Stored] = []
        for after, upto in within or ((first.seq - 1, last),):
            readings = [self._stored(filter, after, upto) for filter in filters]
            found += [
                stored async for batch in merged_by_seq(readings) for stored in batch if exchange_of(stored) == exchange
            ]
        # What is around its events is read, to notice gaps; not all between them, since feedback may come much later.
        after, upto = _range_around(found, last)
        for one, other in merged_ranges((each.seq - _SEARCHED_AROUND, each.seq + _SEARCHED_AROUND) for each in found):
            async for _ in self.as_stored([EVERYTHING], max(after, one - 1), min(other, upto)):
                continue
        self.gaps.note_read(after, upto)
        return list(await self.sealing.open(found))

    def _inputs(self) -> AsyncIterator[Stored]:
        return self._each(_INPUTS)

    def _everything(self) -> AsyncIterator[Stored]:
        return self._each(EVERYTHING)

    async def _each(self, filter: str) -> AsyncIterator[Stored]:
        """Yield messages for a look-up; gaps among them are not reported."""
        async for batch in self._stored(filter, 0, (await self.info()).last_seq):
            for stored in batch:
                yield stored


def _filters_from(first: Stored, partitions: Partitions) -> list[str]:
    """Return the filters over all partitions that may hold further messages of an exchange, given its first."""
    _, agent, session = split_stored(first.subject)
    agents = partitions.onward(agent, unquote(first.headers.get("ce-agent", "")), of_sessions=False)
    sessions = partitions.onward(session, unquote(first.headers.get("ce-session", "")), of_sessions=True)
    return [f"log.{one}.{other}.>" for one in agents for other in dict.fromkeys((*sessions, NO_PARTITION))]


def _range_around(found: Sequence[Stored], last: int) -> tuple[int, int]:
    """Return the range (after, up to) in which an exchange may have further events, given those found, in order.

    It has none before its input.
    """
    first = found[0].seq - 1
    has_input = topic_of_subject(found[0].subject) == topic_of(InputReceived)
    return first if has_input else max(0, first - _SEARCHED_AROUND), min(found[-1].seq + _SEARCHED_AROUND, last)


async def _ids(messages: AsyncIterator[Stored], prefix: str, most: int) -> list[str]:
    """Return the ids of exchanges of messages that start with ``prefix``, the first ``most`` of them, in order."""
    found: set[str] = set()
    async for stored in messages:
        exchange = exchange_of(stored)
        if exchange and exchange.startswith(prefix):
            found.add(exchange)
        if len(found) == most:
            break
    return sorted(found)


def _by_topic(by_subject: Mapping[str, int]) -> dict[str, int]:
    """Add up the counts of stored subjects by public ones, the most frequent first."""
    totals = Counter[str]()
    for subject, count in by_subject.items():
        totals[topic_of_subject(subject)] += count
    return dict(sorted(totals.items(), key=lambda pair: (-pair[1], pair[0])))


async def time_of_end(source: Source, upto: int) -> int:
    """Return the server time of the last message up to a sequence (Unix nanoseconds); 0 if there is none."""
    last = min((await source.info()).last_seq, upto)
    async for batch in source.as_stored([EVERYTHING], last - 1, last):
        return batch[-1].time_ns
    return 0


def exchange_of(stored: Stored) -> str:
    """Return the exchange that a message's headers name, or nothing."""
    return exchange_in(stored.headers)
