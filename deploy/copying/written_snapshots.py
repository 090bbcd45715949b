"""Snapshots that a command writes, from the log and the ledger that keeps its beginning, while no worker runs.

The bucket of snapshots takes each from the workers of its actor alone. Meanwhile it takes them from the admin, and from
nobody else.
"""

import asyncio
from collections.abc import Iterable
from pathlib import Path

from deploy.copying.stopped_log import has_pending
from events.errors import LedgerDamaged, Misconfigured
from events.jetstream import Connection, JetStreamLog, KeyValueSnapshots
from events.jetstream.key_value import KEY_SEPARATOR
from events.jetstream.stream import find_stream
from events.ledger import compare, verify
from events.partition_fold import View
from events.snapshot import pack, snapshot_key
from schemas.permissions import IMPORT_ROOT, SNAPSHOTS_BUCKET

_WORKERS_ROOT = f"$KV.{SNAPSHOTS_BUCKET}"
_BUCKET = f"KV_{SNAPSHOTS_BUCKET}"
_ADMIN_ROOT = f"{IMPORT_ROOT}.snapshots"
"""The prefix of subjects on which the bucket takes snapshots while workers cannot write to it.

A key is one token there. With more, the subjects would overlap with those of a log that is closed to its workers."""


async def check_archive(log: JetStreamLog, ledger: Path) -> int:
    """Return the last sequence of the ledger, which holds all of the stream up to there, from the log's beginning on.

    Raises:
        Misconfigured: it is not there, not this stream's, or does not begin with the log.
        LedgerDamaged: it is not sound.
        LogError: the log cannot be read.
    """
    if not ledger.exists():  # noqa: ASYNC240  # one short check, before anything is done
        raise Misconfigured(
            f"{ledger} is not there: the ledger is the archive of what is removed; name it with --ledger"
        )
    chain = await asyncio.to_thread(verify, ledger)
    if not chain.ok:
        raise LedgerDamaged(f"{ledger} is not sound: `neuraxis log verify --log {ledger}` tells; nothing was changed")
    found = await compare(ledger, log)
    if not found.ok:
        why = f"sequence {found.findings[0].seq}: {found.findings[0].detail}"
        raise Misconfigured(f"{ledger} does not hold what stream {log.stream} does ({why}): nothing was changed")
    if chain.first_seq != 1:
        raise Misconfigured(f"{ledger} begins at sequence {chain.first_seq}, not 1: states cannot be folded from it")
    if found.last_seq < log.trimmed_through:
        raise Misconfigured(
            f"{ledger} ends at sequence {found.last_seq}, and the stream begins behind {log.trimmed_through}: it is an "
            "older copy; name the ledger that holds all"
        )
    return found.last_seq


async def close_bucket(connection: Connection, replicas: int) -> None:
    """Let only the admin write to the bucket of snapshots, no worker; it is made if it is not there."""
    await KeyValueSnapshots.over(connection, replicas)
    bucket = (await connection.api(f"STREAM.INFO.{_BUCKET}"))["config"]
    closed = {
        "subjects": [f"{_ADMIN_ROOT}.*"],
        "subject_transform": {"src": f"{_ADMIN_ROOT}.*", "dest": f"{_WORKERS_ROOT}.{{{{split(1,{KEY_SEPARATOR})}}}}"},
    }
    await connection.api(f"STREAM.UPDATE.{_BUCKET}", bucket | closed)


async def open_bucket(connection: Connection) -> None:
    """Let workers write snapshots again, if the bucket is there and was closed to them."""
    found = await find_stream(connection, _BUCKET)
    if found is None:
        return
    bucket = found["config"]
    opened = {name: value for name, value in bucket.items() if name != "subject_transform"}
    if opened != bucket:
        await connection.api(f"STREAM.UPDATE.{_BUCKET}", opened | {"subjects": [f"{_WORKERS_ROOT}.>"]})


async def write_snapshots(connection: Connection, views: Iterable[View], upto: int, last_loss: int) -> int:
    """Write the snapshot of each partition to the closed bucket; return how many.

    The partitions have folded all up to the sequence ``upto``, or up to what they have yet to decide. ``last_loss`` is
    the sequence of the last loss that the log recorded.

    Raises:
        Misconfigured: only a newer release can fold one of them.
    """
    snapshots, count = KeyValueSnapshots(connection, _ADMIN_ROOT), 0
    for view in views:
        if view.why_passed_over:
            raise Misconfigured(view.why_passed_over)
        folded = upto
        if has_pending(view):
            folded = view.waiting[0].stored.seq - 1 if view.waiting else view.position
        data = pack(view.actor, view.partition, view.checkpoint(), last_loss)
        await snapshots.save(snapshot_key(view.actor, view.partition), data, folded)
        count += 1
    return count
