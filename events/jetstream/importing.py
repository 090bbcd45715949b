"""Appending a recorded log to an empty stream, so that it is the same log there: sequences, times, headers and bodies.

While an import runs, its stream accepts only the import's own subjects: no worker can append between two records, and
nothing is republished as if it happened now. The metadata names the head of the hash chain over the imported events,
until all of them are stored and read back as equal. A batch is stored whole or not at all, and only directly after the
sequence before it. So an import that was killed continues where it stopped, and two at the same time do no harm.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from events.errors import Conflict, Misconfigured, Refused, Unavailable, UnknownOutcome
from events.jetstream.connection import Connection
from events.jetstream.imported import import_record
from events.jetstream.log import JetStreamLog
from events.jetstream.storage_check import storage_fault
from events.jetstream.stream import (
    IMPORTED_HEAD,
    IMPORTED_THROUGH,
    IMPORTING,
    find_stream,
    importing_config,
    stream_config,
)
from events.log import MAX_BATCH, Append, Record, Stored
from schemas.permissions import SNAPSHOTS_BUCKET
from schemas.subjects import EVERYTHING, Partitions

Batches = Callable[[], Iterable[Sequence[Stored]]]
"""Starts reading a recorded log, from its first event, in order."""

EXPECTED_LAST = "Nats-Expected-Last-Sequence"
"""Header of a batch's first record: the stream's last sequence must be this one, or the batch is not stored."""

_BATCH_BYTES = 4 * 1024 * 1024  # of the records of one append


class Recording(msgspec.Struct, frozen=True, kw_only=True):
    """A recorded log to be imported, sequences 1 to ``events`` without a gap.

    ``head`` (hex digits) is the hash of its content, ``sealed`` whether people's words in it are sealed.
    """

    partitions: Partitions
    events: int
    head: str
    sealed: bool
    batches: Batches


class ImportProgress(msgspec.Struct, frozen=True):
    """How far an import has come: ``after`` is the last sequence stored, ``begun`` whether the stream was set up for
    it, ``whole`` whether it is complete."""

    after: int = 0
    begun: bool = False
    whole: bool = False


async def import_progress(connection: Connection, stream: str, recording: Recording) -> ImportProgress:
    """Return how far an import of this recording into this stream has come.

    Raises:
        Misconfigured: the stream, or the bucket of snapshots, holds something else, or somebody reads the stream.
        LogError: the broker cannot be asked.
    """
    found = await find_stream(connection, stream)
    if found is None:
        await _refuse_another_log(connection)
        await _refuse_snapshots(connection)
        return ImportProgress()
    metadata, state = found["config"].get("metadata", {}), found["state"]
    if metadata.get(IMPORTING) == recording.head:
        if state["messages"] != state["last_seq"]:
            raise Misconfigured(
                f"stream {stream} has come to sequence {state['last_seq']} and holds {state['messages']} messages: it "
                f"lost some of what was imported; {_ADVICE}"
            )
        return ImportProgress(state["last_seq"], begun=True)
    if metadata.get(IMPORTED_HEAD) == recording.head:
        return ImportProgress(recording.events, begun=True, whole=True)
    if IMPORTING in metadata:
        raise Misconfigured(
            f"stream {stream} holds the beginning of another import (head {metadata[IMPORTING][:12]}): finish that "
            "one, or import into another folder or stream"
        )
    if state["last_seq"]:
        raise Misconfigured(
            f"stream {stream} is not empty (it has come to sequence {state['last_seq']}): a log is imported into an "
            "empty one; name another folder with --data, or another broker"
        )
    if state["consumer_count"]:
        raise Misconfigured(
            f"stream {stream} is empty, but {state['consumer_count']} consumers read it: stop the workers first, and "
            "delete the stream if they left consumers behind"
        )
    await _refuse_snapshots(connection)
    return ImportProgress()


async def begin(connection: Connection, stream: str, recording: Recording, replicas: int = 1) -> None:
    """Make a stream that accepts this import alone, or reconfigure the empty one that exists.

    Raises:
        Misconfigured: somebody appended to the stream meanwhile.
        LogError: the broker refuses, or cannot be reached.
    """
    config = importing_config(stream, recording.partitions, replicas, recording.head)
    found = await find_stream(connection, stream)
    if found is None:
        await connection.api(f"STREAM.CREATE.{stream}", config)
        return
    updated = await connection.api(f"STREAM.UPDATE.{stream}", config)
    if updated["state"]["last_seq"]:
        await connection.api(f"STREAM.UPDATE.{stream}", found["config"])
        raise Misconfigured(f"somebody appended to stream {stream} just now: stop the workers, and use an empty stream")


async def append(
    connection: Connection, stream: str, recording: Recording, after: int, progress: Callable[[int], None]
) -> None:
    """Store the records after sequence ``after``; ``progress`` is called with the sequence reached.

    Raises:
        Misconfigured: this stream cannot hold a record, or another import appends to it at the same time.
        Unavailable: the broker cannot be reached any more; a repeated import goes on from there.
    """
    log = JetStreamLog(connection, stream, recording.partitions)
    for records in _appends(recording.batches(), after):
        try:
            last = await log.append([Append(records)])
        except Conflict as wrong:
            raise Misconfigured(f"another import into stream {stream} is under way: wait for that one") from wrong
        except (Unavailable, UnknownOutcome) as wrong:
            # On a full disk the server's error does not say so, and another try would end the same way.
            fault = await storage_fault(connection, stream) if connection.connected else ""
            raise Unavailable(
                f"the import stopped behind sequence {after}: {f'{fault} ({wrong})' if fault else wrong}; "
                f"{'mend that, and ' if fault else ''}run it again, and it goes on there"
            ) from wrong
        except Refused as wrong:
            sequences = f"sequences {after + 1} to {after + len(records)}"
            raise Misconfigured(f"{sequences} cannot be stored: {wrong}") from wrong
        after += len(records)
        if last != after:
            raise Misconfigured(f"stream {stream} stored sequence {last} as {after}: it is not the import's own")
        progress(after)


async def finish(
    connection: Connection, stream: str, recording: Recording, progress: Callable[[int], None], replicas: int = 1
) -> None:
    """Read back what was stored, and open the stream to workers if it equals the recording.

    ``progress`` is called with the sequence reached.

    Raises:
        Misconfigured: a message differs, or some are missing; the stream stays closed.
        LogError: the broker cannot be reached.
    """
    await _compare(connection, stream, recording, progress, _ADVICE)
    config = stream_config(stream, recording.partitions, replicas, recording.sealed)
    config["metadata"] |= {IMPORTED_THROUGH: str(recording.events), IMPORTED_HEAD: recording.head}
    await connection.api(f"STREAM.UPDATE.{stream}", config)


async def check(connection: Connection, stream: str, recording: Recording, progress: Callable[[int], None]) -> None:
    """Read back an import that was completed before: the stream may have lost messages since.

    Raises:
        Misconfigured: a message differs, or is missing.
        LogError: the broker cannot be reached.
    """
    lost = "it was imported whole, and the stream has lost it since: import into another folder or stream"
    await _compare(connection, stream, recording, progress, lost)


async def _compare(
    connection: Connection, stream: str, recording: Recording, progress: Callable[[int], None], advice: str
) -> None:
    log = JetStreamLog(connection, stream, recording.partitions, imported_through=recording.events)
    wanted = (stored for batch in recording.batches() for stored in batch)
    count = 0
    async for batch in log.history([EVERYTHING], 0, recording.events):
        for stored in batch:
            if stored != next(wanted, None):
                raise Misconfigured(f"sequence {stored.seq} came back otherwise than it was recorded: {advice}")
        count += len(batch)
        progress(count)
    if count != recording.events:
        raise Misconfigured(f"{count} of {recording.events} events came back: {advice}")


_ADVICE = "the stream stays closed to workers; delete it, and import into a new one"


async def _refuse_another_log(connection: Connection) -> None:
    """Refuse a broker that holds another log. The server itself would refuse only when the stream is opened."""
    others = (await connection.api("STREAM.NAMES", {"subject": "log.>"})).get("streams") or ()
    for other in others:
        raise Misconfigured(
            f"stream {other} has these subjects already: an account of a broker holds one log; name another broker or "
            "account, or another folder with --data"
        )


async def _refuse_snapshots(connection: Connection) -> None:
    found = await find_stream(connection, f"KV_{SNAPSHOTS_BUCKET}")
    if found is not None and found["state"]["messages"]:
        # Workers would take them for states of the imported log.
        raise Misconfigured(
            f"the broker holds snapshots of another log: delete the bucket {SNAPSHOTS_BUCKET} (stream "
            f"KV_{SNAPSHOTS_BUCKET}), or use another broker"
        )


def _appends(batches: Iterable[Sequence[Stored]], after: int) -> Iterator[list[Record]]:
    """Yield batches that are stored as one append each, bounded in records and in bytes."""
    records: list[Record] = []
    size = 0
    for batch in batches:
        for stored in batch:
            if stored.seq <= after:
                continue
            if len(records) == MAX_BATCH or (records and size + len(stored.data) > _BATCH_BYTES):
                yield records
                records, size = [], 0
            records.append(_record(stored, first=not records))
            size += len(stored.data)
    if records:
        yield records


def _record(stored: Stored, first: bool) -> Record:
    try:
        return import_record(stored, **({EXPECTED_LAST: str(stored.seq - 1)} if first else {}))
    except ValueError as wrong:
        raise Misconfigured(f"sequence {stored.seq} cannot be imported: {wrong}") from wrong
