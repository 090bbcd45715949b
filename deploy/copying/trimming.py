"""Remove the beginning of a stream that a ledger keeps: the ledger is then its archive, and snapshots hold the states.

Nothing is purged, which the stream denies to everybody. A limit of age is set on the stream until the broker has
removed what is older; then it is reset. Before that, the ledger must be sound and equal to the stream, its last event
must be younger than the age, and a snapshot of every partition is written from it. So the ledger holds whatever the
broker removes, and no partition needs it. Meanwhile the stream is marked, so that no process starts on it. If this is
killed at any moment, it can be run again.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import msgspec

from actors.registry import ACTORS
from deploy.config.loading import Config
from deploy.copying.stopped_log import has_pending, refuse_members, stream_info, views_of_partitions
from deploy.copying.written_snapshots import check_archive, close_bucket, open_bucket, write_snapshots
from events.errors import LogError, Misconfigured, Unavailable
from events.jetstream import Access, Connection, JetStreamLog
from events.jetstream.reading.get_message import unix_ns
from events.jetstream.stream import ARCHIVED, DEDUPE_WINDOW, TRIMMING
from events.losses import Losses
from events.partition_fold import View
from events.replay.replay import Replay
from events.replay.run_replay import read_into
from events.replay.sources import LedgerSource
from events.routes import partition_names

Progress = Callable[[int], None]
"""Called with the sequence that the fold has reached."""

_MIN_AGE_S = 3600.0
"""The least age of what can be removed: the broker remembers message ids for two minutes, and clocks may differ."""

_REMOVAL_TIMEOUT_S = 60.0
"""Seconds that the broker gets to remove what is too old."""

_POLL_INTERVAL_S = 0.1
_NS_PER_S = 1_000_000_000


class Trimmed(msgspec.Struct, frozen=True):
    """What was done: the first and last sequence that the stream now holds, how many it lost, and how many snapshots
    were written.
    """

    stream: str
    first_seq: int
    last_seq: int
    removed: int
    snapshots: int


async def trim(access: Access, config: Config, ledger: Path, older_than_s: float | None, progress: Progress) -> Trimmed:
    """Remove events of the configured stream that are older than some seconds; None: write only the snapshots.

    The login must be one that may change streams. No worker may run.

    Raises:
        Misconfigured: a worker runs, the ledger is not this stream's or is too old, or something is to be removed while
            a message is undecided.
        LedgerDamaged: the ledger is not sound.
        LogError: the broker cannot be reached, or refuses.
    """
    if older_than_s is not None and older_than_s < _MIN_AGE_S:
        raise Misconfigured("name an age of an hour at least: younger events are still needed")
    stream = config.log.stream
    async with await Connection.open(access) as connection:
        await _end_trimming(connection, stream)
        info = await stream_info(connection, stream)
        await refuse_members(connection, stream)
        log = await JetStreamLog.over(connection, stream=stream, create=False)
        last = await check_archive(log, ledger)
        cutoff_ns = None if older_than_s is None else _server_ns(info) - int(older_than_s * _NS_PER_S)
        if cutoff_ns is not None:
            await _check_last_event_stays(log, last, cutoff_ns)
        try:
            await _begin_trimming(connection, stream, config.log.replicas)
            written = await _write_snapshots(log, ledger, last, progress, removes=cutoff_ns is not None)
            if cutoff_ns is not None:
                await _remove(connection, stream, last, cutoff_ns)
        except BaseException:
            with suppress(LogError):  # the first error explains more, and the mark on the stream says what to do
                await _end_trimming(connection, stream)
            raise
        await _end_trimming(connection, stream)
        after = (await stream_info(connection, stream))["state"]
        removed = after["first_seq"] - info["state"]["first_seq"]
        return Trimmed(stream, after["first_seq"], after["last_seq"], removed, written)


def _server_ns(info: Mapping[str, Any]) -> int:
    """Return the broker's time (Unix nanoseconds), which decides the age of its messages."""
    return unix_ns(info["ts"])


async def _check_last_event_stays(log: JetStreamLog, last: int, cutoff_ns: int) -> None:
    """Raise Misconfigured if the ledger's last event is old enough to be removed: the stream would be left empty."""
    newest = await log.at(last)
    if newest is None or newest.time_ns <= cutoff_ns:
        raise Misconfigured(
            f"the ledger's last event, sequence {last}, is older than that, and what is removed must lie before it: "
            "run the set once, or name a longer age; nothing was removed"
        )


async def _write_snapshots(log: JetStreamLog, ledger: Path, last: int, progress: Progress, *, removes: bool) -> int:
    """Fold the ledger up to ``last``, its end, and write a snapshot of every partition; return how many.

    Where nothing is removed, messages may wait for a decision: no worker can make it before it has a snapshot.
    """
    with closing(LedgerSource(ledger, log.sealing)) as source:
        replay = Replay(tuple(ACTORS.values()), source.partitions)
        replay.decides_tail = True  # so that has_pending sees messages whose decision is not recorded
        await read_into(source, replay, progress=progress)
        losses: Losses = await source.losses()
        pending = sorted({view.actor.name for view in views_of_partitions(replay) if has_pending(view)})
        if pending and removes:
            raise Misconfigured(
                f"{', '.join(pending)} have yet to decide what came last: start the set, wait for a few seconds, stop "
                "it, and run this again; nothing was removed"
            )
        views = (
            replay.views.get((actor.name, partition)) or View(actor, partition, source.partitions)
            for actor in ACTORS.values()
            for partition in partition_names(actor, source.partitions)
        )
        return await write_snapshots(log.connection, views, last, losses.last_seq)


async def _begin_trimming(connection: Connection, stream: str, replicas: int) -> None:
    """Keep workers off the stream, and let only the admin write to the bucket of snapshots."""
    config = (await stream_info(connection, stream))["config"]
    await connection.api(f"STREAM.UPDATE.{stream}", config | {"metadata": config["metadata"] | {TRIMMING: "yes"}})
    await close_bucket(connection, replicas)


async def _remove(connection: Connection, stream: str, last: int, cutoff_ns: int) -> None:
    info = await stream_info(connection, stream)
    config = info["config"]
    age_ns = _server_ns(info) - cutoff_ns
    limits = {"max_age": age_ns, "duplicate_window": min(age_ns, config["duplicate_window"])}
    marked = config["metadata"] | {ARCHIVED: str(last)}
    await connection.api(f"STREAM.UPDATE.{stream}", config | limits | {"metadata": marked})
    deadline = asyncio.get_running_loop().time() + _REMOVAL_TIMEOUT_S
    while not await _is_gone(connection, stream, cutoff_ns):
        if asyncio.get_running_loop().time() > deadline:
            raise Unavailable(f"the broker has not removed all within {_REMOVAL_TIMEOUT_S:g} s: run this again")
        await asyncio.sleep(_POLL_INTERVAL_S)


async def _end_trimming(connection: Connection, stream: str) -> None:
    """Reset the stream and the bucket, if the stream is marked: it is being trimmed, or that was interrupted."""
    config = (await stream_info(connection, stream))["config"]
    if TRIMMING not in config["metadata"]:
        return
    await open_bucket(connection)
    kept = {name: value for name, value in config["metadata"].items() if name != TRIMMING}
    limits = {"max_age": 0, "duplicate_window": DEDUPE_WINDOW * _NS_PER_S}
    await connection.api(f"STREAM.UPDATE.{stream}", config | limits | {"metadata": kept})


async def _is_gone(connection: Connection, stream: str, cutoff_ns: int) -> bool:
    """Whether all events up to the cut-off time are gone from a stream."""
    return unix_ns((await stream_info(connection, stream))["state"]["first_ts"]) > cutoff_ns
