"""Where recorded events are read from: a ledger file, a bundle, or the live stream; the same questions to both."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol
from urllib.parse import unquote

from events.bundles import is_bundle, unpack
from events.bundles.archive import SUFFIX
from events.errors import LedgerDamaged, Misconfigured
from events.jetstream import JetStreamLog
from events.ledger import Extent, LedgerReader
from events.ledger.aside import is_something_else
from events.ledger.rows import topic_of_subject
from events.log import LogInfo, Stored
from events.sealing.sealing import Sealing, closed_sealing
from schemas.event import topic_of
from schemas.subjects import EVERYTHING, Partitions, split_stored, topic_filter
from schemas.vocabulary.gateway import InputReceived

_INPUTS = topic_filter(topic_of(InputReceived))


class Damage:
    """Rows of a ledger that were read and are not what was written: read as they are, and to be told.

    Attributes:
        missing: Rows that the ledger notes of itself, and that are not there; negative where there are more.
    """

    def __init__(self) -> None:
        self._rows: set[int] = set()
        self.missing = 0

    def note(self, seq: int) -> None:
        """Take note of a row by its sequence."""
        self._rows.add(seq)

    def told(self, name: str) -> str:
        """Return what a reader must know of the ledger of this name; empty where all that was read was sound."""
        said = []
        if len(self._rows) == 1:
            said.append(f"row {min(self._rows):,} is not what was written")
        elif self._rows:
            said.append(f"{len(self._rows):,} rows, the first {min(self._rows):,}, are not what was written")
        if self.missing:
            said.append(f"it notes {abs(self.missing):,} {'more' if self.missing > 0 else 'less'} than it holds")
        if not said:
            return ""
        return f"{name} is damaged: {'; '.join(said)}. What rests on it is unsure; `neuraxis log verify` tells all"


class Source(Protocol):
    """Recorded events, in order."""

    @property
    def name(self) -> str:
        """What it is, for people."""
        ...

    @property
    def partitions(self) -> Partitions:
        """The partition counts of the log."""
        ...

    @property
    def stream(self) -> str:
        """The name of the stream that the events were appended to."""
        ...

    @property
    def sealing(self) -> Sealing:
        """What opens people's words, if their keys can be reached."""
        ...

    @property
    def damage(self) -> Damage:
        """What was read and is not what was written."""
        ...

    async def info(self) -> LogInfo:
        """Return its extent."""
        ...

    def recorded_head(self, seq: int) -> bytes | None:
        """Return the hash chain's head after a sequence as it was recorded; None where none was."""
        ...

    def history(self, filters: Sequence[str], after: int, upto: int) -> AsyncIterator[Sequence[Stored]]:
        """Read the messages with ``after < seq <= upto`` that match any filter, in order."""
        ...

    def as_stored(self, filters: Sequence[str], after: int, upto: int) -> AsyncIterator[Sequence[Stored]]:
        """Read the same as it is stored, words sealed where they are."""
        ...

    async def counts(self) -> dict[str, int]:
        """Return the number of events of each public subject, the most frequent first."""
        ...

    async def exchange_ids(self, prefix: str, most: int) -> list[str]:
        """Return the ids of exchanges that start with ``prefix``, ``most`` of them at most."""
        ...

    async def last_exchange(self) -> str | None:
        """Return the id of the exchange that began last, or None."""
        ...

    async def exchange(self, exchange: str) -> list[Stored]:
        """Return the messages of an exchange, in order; none when it is unknown."""
        ...


class LedgerSource:
    """A ledger file, open for reading.

    Attributes:
        file: The ledger itself: of a bundle, an unpacked copy, for as long as this is open.
        sealing: What opens people's words where the file holds them sealed; without keys, a mark stands in their place.
        lacks_journal: The file was copied while a set wrote to it, and what was in the log beside it may be missing.
        damage: The rows that were read and are not what was written.
    """

    def __init__(self, path: Path, sealing: Sealing | None = None) -> None:
        """Open the file, which may be a bundle; raises as ``LedgerReader`` and ``unpack`` do."""
        self._open_things = ExitStack()
        self.damage = Damage()
        try:
            file = self._open_things.enter_context(ledger_file(path))
            self.file = file
            self._reader = self._open_things.enter_context(LedgerReader(file, self.damage.note))
            self.sealing = sealing or closed_sealing()
            self.name = f"{'ledger' if file == path else 'bundle'} {path}"
            self.partitions = self._reader.partitions
            info = self._reader.info()
            self.stream, self.lacks_journal = info.stream, info.lacks_journal
        except BaseException:
            self._open_things.close()
            raise

    def close(self) -> None:
        """Close the file."""
        self._open_things.close()

    async def as_stored(self, filters: Sequence[str], after: int, upto: int) -> AsyncIterator[Sequence[Stored]]:
        """Read a range as it is stored, words sealed where they are; otherwise as ``history``."""
        for batch in self._reader.history(filters, after, upto):
            yield batch

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
        for batch in self._reader.history(filters, after, upto):
            yield await self.sealing.open(batch)

    def extent(self, filters: Sequence[str], upto: int, until_ns: int) -> Extent:
        """Count the messages of a range by stored subject; see ``LedgerReader``."""
        return self._reader.extent(filters, upto, until_ns)

    async def counts(self) -> dict[str, int]:
        """Count by subject; see ``Source``. Every row is read, so that damage is noticed."""
        before = self._reader.info()
        extent = self._reader.extent([EVERYTHING], before.last_seq)
        # Its writer may be at work: it noted no more rows before, and no less afterwards.
        after = self._reader.info()
        self.damage.missing = max(0, before.rows - extent.messages) or min(0, after.rows - extent.messages)
        return _by_topic(extent.subjects)

    def skip_checks(self) -> None:
        """Read rows without looking whether they are what was written: another source of this file does."""
        self._reader.checks = False

    async def exchange_ids(self, prefix: str, most: int) -> list[str]:
        """Look up ids; see ``Source``."""
        return self._reader.exchange_ids(prefix, most)

    async def last_exchange(self) -> str | None:
        """Look up the latest; see ``Source``."""
        return self._reader.last_exchange()

    async def exchange(self, exchange: str) -> list[Stored]:
        """Look up an exchange; see ``Source``."""
        return list(await self.sealing.open(self._reader.exchange(exchange)))


class StreamSource:
    """The live stream. It has no index over exchanges: looking one up reads the log's inputs."""

    def __init__(self, log: JetStreamLog) -> None:
        self._log = log
        self.name = f"stream {log.stream} at {log.connection.access.servers}"
        self.partitions = log.partitions
        self.stream = log.stream
        self.sealing = log.sealing or closed_sealing()
        self.damage = Damage()

    def as_stored(self, filters: Sequence[str], after: int, upto: int) -> AsyncIterator[Sequence[Stored]]:
        """Read a range as it is stored, words sealed where they are; otherwise as ``history``."""
        return self._log.as_stored().history(filters, after, upto)

    def recorded_head(self, seq: int) -> bytes | None:
        """Return nothing: a stream keeps no chain; see ``Source``."""
        return None

    async def info(self) -> LogInfo:
        """Return the stream's extent."""
        return await self._log.info()

    def history(self, filters: Sequence[str], after: int, upto: int) -> AsyncIterator[Sequence[Stored]]:
        """Read a range; see ``Source``."""
        return self._log.history(filters, after, upto)

    async def counts(self) -> dict[str, int]:
        """Ask the broker for its counts by subject; see ``Source``."""
        by_subject: dict[str, int] = {}
        while True:
            # The broker answers in pages; a page of none is the end.
            page = await self._log.connection.api(
                f"STREAM.INFO.{self._log.stream}", {"subjects_filter": ">", "offset": len(by_subject)}
            )
            found = page["state"].get("subjects") or {}
            by_subject |= found
            if not found or len(by_subject) >= int(page.get("total", 0)):
                break
        return _by_topic(by_subject)

    async def exchange_ids(self, prefix: str, most: int) -> list[str]:
        """Look up ids; see ``Source``."""
        found: dict[str, None] = {}
        async for stored in self._inputs():
            exchange = exchange_of(stored)
            if exchange and exchange.startswith(prefix):
                found[exchange] = None
            if len(found) == most:
                break
        return sorted(found)

    async def last_exchange(self) -> str | None:
        """Look up the latest; see ``Source``."""
        last = await self._log.last(_INPUTS)
        async for batch in self._log.history([_INPUTS], last - 1, last):
            return exchange_of(batch[-1]) or None
        return None

    async def exchange(self, exchange: str) -> list[Stored]:
        """Look up an exchange; see ``Source``."""
        async for stored in self._inputs():
            if exchange_of(stored) == exchange:
                return await self._from(stored, exchange)
        return []

    async def _from(self, first: Stored, exchange: str) -> list[Stored]:
        _, agent, session = split_stored(first.subject)
        upto = (await self._log.info()).last_seq
        filters = [f"log.{agent}.{session}.>", f"log.{agent}._.>"]
        return [
            stored
            async for batch in self._log.history(filters, first.seq - 1, upto)
            for stored in batch
            if exchange_of(stored) == exchange
        ]

    async def _inputs(self) -> AsyncIterator[Stored]:
        upto = (await self._log.info()).last_seq
        async for batch in self._log.history([_INPUTS], 0, upto):
            for stored in batch:
                yield stored


def _by_topic(by_subject: Mapping[str, int]) -> dict[str, int]:
    """Add up the counts of stored subjects by public ones, the most frequent first."""
    totals = Counter[str]()
    for subject, count in by_subject.items():
        totals[topic_of_subject(subject)] += count
    return dict(sorted(totals.items(), key=lambda pair: (-pair[1], pair[0])))


@contextmanager
def ledger_file(path: Path) -> Iterator[Path]:
    """Give a ledger file: ``path`` itself, or, where that is a bundle, a copy unpacked for as long as this lasts.

    Raises:
        Misconfigured: the file is something else.
        LedgerDamaged, Misconfigured, Unavailable: the bundle is not sound, or cannot be unpacked.
    """
    if path.suffix == SUFFIX and not path.exists():
        raise Misconfigured(f"{path}: there is no such bundle; `neuraxis log export --format bundle` writes one")
    if not is_bundle(path):
        if path.suffix == SUFFIX and path.is_file():
            raise LedgerDamaged(f"{path} is no bundle, or damaged: take another copy, or export it anew")
        if is_something_else(path):
            raise Misconfigured(
                f"{path} is neither a ledger nor a bundle: name the ledger.db of a data folder, or a copy of one"
            )
        yield path
        return
    with TemporaryDirectory(prefix="neuraxis-") as folder, ThreadPoolExecutor(1) as thread:
        unpacked = Path(folder) / "ledger.db"
        # In a thread of its own: callers may be within an event loop, and writing a ledger needs one.
        thread.submit(lambda: asyncio.run(unpack(path, unpacked))).result()
        yield unpacked


async def time_of_end(source: Source, upto: int) -> int:
    """Return the server time of the last message up to a sequence (Unix nanoseconds), 0 where there is none."""
    last = min((await source.info()).last_seq, upto)
    async for batch in source.as_stored([EVERYTHING], last - 1, last):
        return batch[-1].time_ns
    return 0


def exchange_of(stored: Stored) -> str:
    """Return the exchange that a message's headers name, or nothing."""
    return unquote(stored.headers.get("ce-exchange", ""))
