"""The log as a port (an interface), and the records that pass through it.

It has two adapters, ``events.jetstream`` and ``tests.simulated``; one test suite runs against both.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from enum import Enum
from typing import Protocol

import msgspec

from schemas.subjects import Partitions


class Record(msgspec.Struct, frozen=True):
    """A message to be stored.

    ``headers`` hold its ``Nats-Msg-Id``: an id known to the stream's dedupe window is not stored again.
    """

    subject: str
    headers: Mapping[str, str]
    data: bytes


class Seal(Enum):
    """What became of a message's sealed texts since it was read; see ``events.sealing``.

    AS_STORED: they were not opened, or it has none. OPENED: they were decrypted. CLOSED: their key is gone or out of
    reach, and a placeholder stands for them. BROKEN: they were changed since they were sealed.
    """

    AS_STORED = "as_stored"
    OPENED = "opened"
    CLOSED = "closed"
    BROKEN = "broken"


class Stored(msgspec.Struct, frozen=True, gc=False):
    """A message of the log. ``time_ns`` is the server's timestamp, Unix nanoseconds."""

    seq: int
    time_ns: int
    subject: str
    headers: Mapping[str, str]
    data: bytes
    seal: Seal = Seal.AS_STORED


def is_same_message(message: Stored | None, row: Stored) -> bool:
    """Whether a message of a log and a row of a ledger, both as they are stored, are the same."""
    return (
        message is not None
        and (message.seq, message.time_ns, message.subject, message.data)
        == (row.seq, row.time_ns, row.subject, row.data)
        and dict(message.headers) == dict(row.headers)
    )


class Fence(msgspec.Struct, frozen=True):
    """The condition of an append: ``last`` is still the sequence of the last message on subjects that match ``filter``.

    0: there is no such message. It lets one writer at a time append for a partition: whoever has not read what another
    has written there is refused.
    """

    filter: str
    last: int


class Append(msgspec.Struct, frozen=True):
    """Records that are stored all or none, in this order and without others between them, if the fence holds."""

    records: Sequence[Record]
    fence: Fence | None = None


class LogInfo(msgspec.Struct, frozen=True):
    """The extent of a log. Sequences are 0 when it is empty.

    ``partitions`` are the counts that it has now, and ``is_repartitioning`` whether they are being changed: they may
    differ from those when the log was opened.
    """

    partitions: Partitions
    first_seq: int
    last_seq: int
    messages: int
    bytes: int
    is_repartitioning: bool = False


class Tail(Protocol):
    """An endless ordered reader: no gap, no repeat, whatever happens to the connection."""

    @property
    def cut_off_s(self) -> float:
        """For how many seconds it has tried in vain to read, although the broker can be reached; 0: it can read."""

    async def next(self) -> Sequence[Stored]:
        """Wait for the next messages, in stream order; never empty.

        Raises:
            LogCut: the log does not hold any more what this reader has read, or began after.
            Unavailable: the log cannot be read any more.
        """

    async def close(self) -> None:
        """Stop reading and free the consumer."""


class Log(Protocol):
    """An append-only, totally ordered log of messages on subjects.

    In a sealed log people's words are encrypted. Its methods seal and open them: callers give and get readable texts.
    """

    @property
    def partitions(self) -> Partitions:
        """The partition counts fixed when the stream was made."""

    @property
    def trimmed_through(self) -> int:
        """The last sequence that was removed from the log's beginning on purpose: snapshots and a ledger hold it."""

    async def append(self, appends: Sequence[Append]) -> int:
        """Store the records of all ``appends``, all or none, contiguously; return the sequence of the last.

        Fences are checked against the log before the whole call. One record in all is a plain publish;
        more are one atomic batch (at most ``MAX_BATCH`` records). A lone record without fence whose message id is
        known is not stored again: the sequence of the stored one is returned.

        Raises:
            Conflict: a fence does not hold; or a message id is known already, and there is a fence or a batch.
            UnknownOutcome, Unavailable, Refused: see ``events.errors``.
        """

    def append_now(self, append: Append, on_done: Callable[[int | BaseException], None]) -> bool:
        """Send an append of one record before returning; return False where only :meth:`append` can do it.

        Nothing was sent then. ``on_done`` is called once, in a later turn of the event loop, with what :meth:`append`
        would have returned or raised.
        """

    async def last(self, filter: str) -> int:
        """Return the sequence of the last message on subjects matching ``filter``, 0 when there is none."""

    async def at(self, seq: int) -> Stored | None:
        """Return the message at a sequence, None when there is none that can be read."""

    async def info(self) -> LogInfo:
        """Return the log's extent."""

    def history(self, filters: Sequence[str], after: int, upto: int) -> AsyncIterator[Sequence[Stored]]:
        """Read the messages with ``after < seq <= upto`` that match any filter, in order, then end.

        Filters may not overlap. Raises Unavailable when the log cannot be read within its deadline.
        """

    async def tail(self, filters: Sequence[str], after: int, *, on_demand: bool = False) -> Tail:
        """Start an endless reading of the messages after a sequence that match any filter; filters may not overlap.

        ``on_demand``: messages are read from the log only while ``next`` waits, and then all that there are. A caller
        that pauses between two calls is not woken meanwhile, and gets all that has come in one batch.
        """


MAX_BATCH = 1000
"""Records an atomic batch may hold: the server's own limit."""

MAX_RECORD_BYTES = 1024 * 1024
"""Largest record, headers and data together."""


class Snapshots(Protocol):
    """A store of the newest snapshot of each actor partition. Losing one costs time, never correctness."""

    async def revision(self, key: str) -> int:
        """Return the number of the snapshot under ``key``, which no other has; 0 when there is none.

        Raises:
            Unavailable, UnknownOutcome: it cannot be read now.
        """

    async def save(self, key: str, data: bytes, upto: int, replaces: int | None = None) -> None:
        """Replace the snapshot under ``key``; every message of its partition up to sequence ``upto`` is in it.

        Raises:
            Conflict: it does not replace the revision ``replaces`` (None: it may replace any).
            Unavailable, UnknownOutcome: it is not stored, or may not be.
        """

    async def load(self, key: str, at_least: int = 0) -> bytes | None:
        """Return the snapshot under ``key``, or None when there is none or it is unreadable.

        Raises:
            Unavailable, UnknownOutcome: it cannot be read now, or holds less than all up to the sequence ``at_least``.
        """


class Membership(Protocol):
    """Who is alive: a worker is a member while its heartbeats are younger than the expiry."""

    async def beat(self, worker: str, value: bytes) -> None:
        """Renew ``worker``'s membership; ``value`` is its heartbeat's content."""

    async def leave(self, worker: str) -> None:
        """End ``worker``'s membership at once."""

    async def members(self) -> Mapping[str, bytes]:
        """Return the living members and their last heartbeats."""
