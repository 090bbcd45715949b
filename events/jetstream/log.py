"""The log's JetStream adapter: appending on the condition of a fence (``events.log.Fence``), and reading."""

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import suppress
from copy import copy
from typing import Protocol, Self

import msgspec

from events.errors import Conflict, LogError, Refused, Unavailable, UnknownOutcome
from events.jetstream.connection import Access, Connection, Reply, require_served
from events.jetstream.imported import as_recorded
from events.jetstream.reading.closed_reader import HISTORY_PULL, ClosedReader
from events.jetstream.reading.get_message import find_message, get_message
from events.jetstream.reading.stream_reader import PULL, StreamReader
from events.jetstream.session_keys import KeyValueKeys, watch
from events.jetstream.stream import (
    EXPECTED,
    REPARTITIONING,
    WRONG_LAST_SEQUENCE,
    counts_of,
    ensure_stream,
    subject_counts,
    trimmed_through,
)
from events.log import MAX_BATCH, MAX_RECORD_BYTES, Append, Fence, LogInfo, Record, Stored, Tail
from events.losses import LOSS_FILTER, Losses
from events.sealing.keys import Keyring
from events.sealing.sealing import OpenedTail, Sealing
from schemas.permissions import STREAM
from schemas.subjects import Partitions

# Headers by which the server checks a fence (with ``EXPECTED``), and by which it knows the messages of an atomic batch.
EXPECTED_FILTER = "Nats-Expected-Last-Subject-Sequence-Subject"
BATCH_ID = "Nats-Batch-Id"
BATCH_SEQUENCE = "Nats-Batch-Sequence"
BATCH_COMMIT = "Nats-Batch-Commit"

HEADER_ROOM = 256
"""Bytes reserved for the fence and batch headers that an append adds to a record's own."""

# JetStream error codes.
_BATCH_DUPLICATE = 10201
_BATCH_INCOMPLETE = 10176
# The account's bytes are used up, it has no limit for such a stream, or too low a one; too many requests; the stream is
# offline.
_TRY_LATER = (10002, 10120, 10122, 10167, 10194)
_TOO_MANY = 429  # the status of an error: too many requests

_APPEND_DEADLINE = 5.0  # seconds
_SILENCE_S = 30.0  # see ``JetStreamLog.silence_s``
_WRONG_LAST_ERROR = re.compile(r"wrong last sequence: (\d+)")


class _Ack(msgspec.Struct):
    seq: int = 0
    duplicate: bool = False
    error: dict[str, int | str] | None = None


_ack_decoder = msgspec.json.Decoder(_Ack)


class Archive(Protocol):
    """What keeps messages that were removed from a stream's beginning: a ledger."""

    def history(self, filters: Sequence[str], after: int, upto: int) -> AsyncIterator[Sequence[Stored]]:
        """Read the messages with ``after < seq <= upto`` that match any filter, in order, as they were stored."""


class JetStreamLog:
    """A log on a JetStream stream; made by :meth:`connect` or :meth:`over`.

    Attributes:
        connection: The connection to the broker.
        stream: The stream's name.
        sealing: Seals and opens people's words; None if the stream was made without sealing.
        imported_through: Messages up to this sequence were imported, and are read as they were recorded.
        trimmed_through: Messages up to this sequence were removed; a ledger and the snapshots hold them.
        archive: Where the removed messages are read from; None: they are not read.
        silence_s: Seconds without a message after which reading a closed range gives up.
    """

    def __init__(
        self,
        connection: Connection,
        stream: str,
        partitions: Partitions,
        sealing: Sealing | None = None,
        imported_through: int = 0,
        trimmed_through: int = 0,
    ) -> None:
        self.connection = connection
        self.stream = stream
        self.sealing = sealing
        self.imported_through = imported_through
        self.trimmed_through = trimmed_through
        self.archive: Archive | None = None
        self.silence_s = _SILENCE_S
        self._partitions = partitions
        self._losses = Losses()

    @classmethod
    async def connect(
        cls,
        access: Access | str,
        *,
        stream: str = STREAM,
        partitions: Partitions | None = None,
        replicas: int = 1,
        create: bool = True,
        sealed: bool | None = None,
    ) -> "JetStreamLog":
        """Connect, and make or check the stream.

        The other arguments are those of ``ensure_stream``. Raises as ``Connection.open`` and ``ensure_stream`` do.
        """
        connection = await Connection.open(Access(servers=access) if isinstance(access, str) else access)
        try:
            return await cls.over(
                connection, stream=stream, partitions=partitions, replicas=replicas, create=create, sealed=sealed
            )
        except BaseException:
            await connection.close()
            raise

    @classmethod
    async def over(
        cls,
        connection: Connection,
        *,
        stream: str = STREAM,
        partitions: Partitions | None = None,
        replicas: int = 1,
        create: bool = True,
        sealed: bool | None = None,
    ) -> "JetStreamLog":
        """Make or check the stream over an open connection, and, if it is sealed, the bucket of its sessions' keys."""
        facts = await ensure_stream(connection, stream, partitions, replicas, create, sealed)
        sealing = None
        if facts.sealed:
            keyring = Keyring(await KeyValueKeys.over(connection, stream, replicas))
            await watch(connection, stream, keyring)
            sealing = Sealing(keyring)
        return cls(connection, stream, facts.partitions, sealing, facts.imported_through, facts.trimmed_through)

    def as_stored(self) -> "JetStreamLog":
        """Return this log without opening sealed texts: messages as stored, to the byte, for copies and comparisons."""
        stored = copy(self)
        stored.sealing = None
        return stored

    def with_archive(self, archive: Archive | None) -> "JetStreamLog":
        """Return this log, reading from ``archive`` what was removed from its stream's beginning; None: not at all."""
        other = copy(self)
        other.archive = archive
        return other

    async def opened(self, stored: Stored) -> Stored:
        """Return a message that was not read through this log with its sealed texts opened; raises LogError."""
        return stored if self.sealing is None else (await self.sealing.open((stored,)))[0]

    @property
    def partitions(self) -> Partitions:
        """The partition counts fixed when the stream was made."""
        return self._partitions

    @property
    def unseen(self) -> str:
        """What of the log is not read here, in words: its beginning, if that was removed; empty if all is read."""
        if not self.trimmed_through or self.archive is not None:
            return ""
        return (
            f"events up to sequence {self.trimmed_through:,} were removed from stream {self.stream}, and are in its "
            "ledger alone"
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connection."""
        await self.connection.close()

    async def append(self, appends: Sequence[Append]) -> int:
        """Store records behind fences; see ``events.log.Log.append``."""
        if self.sealing is not None:
            appends = await self.sealing.seal(appends)
        messages = [
            (record, append.fence if position == 0 else None)
            for append in appends
            for position, record in enumerate(append.records)
        ]
        if not messages or not all(append.records for append in appends):
            raise Refused("an append needs at least one record; a fence without one would go unchecked")
        for record, _ in messages:
            _check_size(record, self.connection.max_payload)
        if len(messages) == 1:
            return await self._publish(*messages[0])
        if len(messages) > MAX_BATCH:
            raise Refused(f"{len(messages)} records in one batch: the server takes {MAX_BATCH} at most")
        return await self._publish_batch(messages)

    def append_now(self, append: Append, on_done: Callable[[int | BaseException], None]) -> bool:
        """Send an append of one record before returning; see ``events.log.Log.append_now``."""
        fence = append.fence
        record = self._sealed_now(*append.records)
        if record is None or not _fits(record, self.connection.max_payload):
            return False
        call = self.connection.request_now(record.subject, record.data, _fenced(record, fence), _APPEND_DEADLINE)
        if call is None:
            return False

        def on_answer(call: asyncio.Future[Reply]) -> None:
            outcome: int | BaseException
            try:
                outcome = _sequence(require_served(call.result(), record.subject), accept_duplicate=fence is None)
            except (LogError, asyncio.CancelledError) as error:
                outcome = error
            on_done(outcome)

        call.add_done_callback(on_answer)
        return True

    def _sealed_now(self, record: Record) -> Record | None:
        if self.sealing is None:
            return record
        with suppress(Refused):
            return self.sealing.sealed_now(record)
        return None

    async def _publish(self, record: Record, fence: Fence | None) -> int:
        headers = _fenced(record, fence)
        answer = await self.connection.request(record.subject, record.data, headers=headers, deadline=_APPEND_DEADLINE)
        return _sequence(answer, accept_duplicate=fence is None)

    async def _publish_batch(self, messages: Sequence[tuple[Record, Fence | None]]) -> int:
        batch = self.connection.new_name()
        number, call = self.connection.expect(*{record.subject for record, _ in messages})
        last = len(messages)
        try:
            for position, (record, fence) in enumerate(messages, 1):
                headers = _fenced(record, fence)
                headers[BATCH_ID] = batch
                headers[BATCH_SEQUENCE] = str(position)
                if position == last:
                    headers[BATCH_COMMIT] = "1"
                reply = self.connection.reply_subject(number) if position == last else ""
                await self.connection.publish(record.subject, record.data, reply=reply, headers=headers)
        except BaseException:
            call.cancel()
            self.connection.forget(number)
            raise
        return _sequence(await self.connection.answer(number, call, messages[0][0].subject, _APPEND_DEADLINE))

    async def last(self, filter: str) -> int:
        """Return the sequence of the last message on subjects matching ``filter``, 0 when there is none."""
        message = await find_message(self.connection, self.stream, {"last_by_subj": filter})
        return 0 if message is None else int(message["seq"])

    async def at(self, seq: int) -> Stored | None:
        """Return the message at a sequence as it is stored, sealed texts sealed; see ``events.log.Log.at``."""
        found = await get_message(self.connection, self.stream, seq)
        if found is None:
            return None
        return as_recorded(seq, found.time_ns, found.subject, found.headers, found.data, self.imported_through)

    async def subject_counts(self) -> dict[str, int]:
        """Return how many events each stored subject has; unreadable ones count, too. Raises LogError."""
        return await subject_counts(self.connection, self.stream)

    async def info(self) -> LogInfo:
        """Return the log's extent."""
        found = await self.connection.api(f"STREAM.INFO.{self.stream}")
        config, state = found["config"], found["state"]
        # More may have been removed since this log was opened.
        self.trimmed_through = max(self.trimmed_through, trimmed_through(found))
        kept = 0 if self.archive is None else self.trimmed_through
        first, messages = (1, state["messages"] + kept) if kept else (state["first_seq"], state["messages"])
        extent = first, state["last_seq"], messages, state["bytes"]
        return LogInfo(counts_of(self.stream, config), *extent, REPARTITIONING in config["metadata"])

    async def losses(self) -> Losses:
        """Return what the log has recorded as lost by now; a single request if nothing was added."""
        last = await self.last(LOSS_FILTER)
        if last != self._losses.last_seq:
            self._losses = await Losses.of(self, last)
        return self._losses

    async def _gap_ends(self, filters: Sequence[str]) -> Sequence[int]:
        """Return where the log's gaps (messages that cannot be read any more) end; a reading of one filter needs none.

        A reading of several filters starts again behind each gap (``events.jetstream.reading.stream_reader``).
        """
        return (await self.losses()).gap_ends if len(filters) > 1 else ()

    async def history(self, filters: Sequence[str], after: int, upto: int) -> AsyncGenerator[Sequence[Stored]]:
        """Read a closed range; see ``events.log.Log.history``."""
        after = max(0, after)
        if self.archive is not None and after < upto:
            await self.info()  # more may have been removed since this log was opened
        if self.archive is not None and after < self.trimmed_through:
            async for removed in self.archive.history(filters, after, min(upto, self.trimmed_through)):
                yield removed if self.sealing is None else await self.sealing.open(removed)
            after = self.trimmed_through
        if upto <= after:
            return
        gap_ends = [end for end in await self._gap_ends(filters) if end <= upto]  # those behind the range do not matter
        name, imported = self.connection.new_name(), self.imported_through
        reader = ClosedReader(self.connection, self.stream, filters, after, name, imported, gap_ends, HISTORY_PULL)
        try:
            left = await reader.start()
            while left > 0 or not await reader.has_searched(upto, self.silence_s):
                batch = await reader.next_until(upto, self.silence_s)
                if not batch:  # ``left`` also counts messages that cannot be read any more
                    return
                left -= len(batch)
                wanted = [stored for stored in batch if stored.seq <= upto]
                if wanted:
                    yield wanted if self.sealing is None else await self.sealing.open(wanted)
                if len(wanted) < len(batch) or batch[-1].seq == upto:
                    return
        finally:
            await reader.close()

    async def tail(self, filters: Sequence[str], after: int, *, on_demand: bool = False, pull: int = PULL) -> Tail:
        """Start an endless reading; see ``events.log.Log.tail``, and ``StreamReader`` for ``pull``."""
        gap_ends = await self._gap_ends(filters)
        name, imported = self.connection.new_name(), self.imported_through
        reader = StreamReader(
            self.connection, self.stream, filters, after, name, imported, gap_ends, pull, on_demand=on_demand
        )
        try:
            await reader.start()
        except BaseException:
            await reader.close()
            raise
        return reader if self.sealing is None else OpenedTail(reader, self.sealing, lambda: self.connection.connected)


def _fenced(record: Record, fence: Fence | None) -> dict[str, str]:
    """Return a record's headers with those of its fence."""
    headers = dict(record.headers)
    if fence is not None:
        headers[EXPECTED] = str(fence.last)
        headers[EXPECTED_FILTER] = fence.filter
    return headers


def _size_and_limit(record: Record, max_payload: int) -> tuple[int, int]:
    # nats-py checks the size of the data alone. Over the limit with headers, the server closes the connection.
    names, values = record.headers.keys(), record.headers.values()
    size = sum(map(len, names)) + sum(map(len, values)) + 4 * len(names) + HEADER_ROOM + len(record.data)
    return size, min(max_payload, MAX_RECORD_BYTES + 64 * 1024)


def _fits(record: Record, max_payload: int) -> bool:
    size, limit = _size_and_limit(record, max_payload)
    return size <= limit


def _check_size(record: Record, max_payload: int) -> None:
    size, limit = _size_and_limit(record, max_payload)
    if size > limit:
        raise Refused(f"a record of {size} bytes on {record.subject}: at most {limit} with headers; send less text")


def _sequence(answer: Reply, *, accept_duplicate: bool = False) -> int:
    """Return the sequence in an acknowledgement; ``accept_duplicate``: a record whose id is known counts as stored."""
    try:
        ack = _ack_decoder.decode(answer.data)
    except msgspec.DecodeError as wrong:
        raise UnknownOutcome(f"the broker's answer cannot be read: {wrong}") from wrong
    if ack.error is None:
        if ack.duplicate and not accept_duplicate:
            # The stored one lies before the fence: its sequence must not become the writer's last.
            raise Conflict(f"the message id is known already, at sequence {ack.seq}")
        return ack.seq
    raise _failure(ack.error)


def _named_last_sequence(description: str) -> int | None:
    """Return the last sequence that a "wrong last sequence" error names; None if it names none."""
    found = _WRONG_LAST_ERROR.fullmatch(description)
    return int(found[1]) if found else None


def _failure(error: dict[str, int | str]) -> LogError:
    number, status = int(error.get("err_code", 0)), int(error.get("code", 0))
    text = f"{error.get('description', 'refused')} (code {number})"
    if number in WRONG_LAST_SEQUENCE or number == _BATCH_DUPLICATE:
        return Conflict(f"another writer was here: {text}", _named_last_sequence(str(error.get("description", ""))))
    if number == _BATCH_INCOMPLETE:
        return UnknownOutcome(f"the batch was not whole: {text}")
    if status >= 500 or status == _TOO_MANY or number in _TRY_LATER:
        return Unavailable(f"the broker cannot store now: {text}")
    return Refused(f"the broker refuses: {text}")
