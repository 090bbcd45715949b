"""Watching that the embedded server stores messages; if it stops, it is restarted as soon as the disk has space.

After a failed write, as on a full disk, nats-server never writes to the stream again: it refuses all later appends,
even when the disk has space again, until it is restarted.

If somebody deletes or moves its files, it notices nothing. It writes on to files that no longer have a name, and
acknowledges what will be gone when it ends.
"""

import asyncio
import os
from asyncio.subprocess import Process
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from deploy.processes.broker.configuration import Layout
from deploy.processes.supervising.child import end
from events.errors import LogError
from events.jetstream.connection import Access, Connection
from events.jetstream.storage_check import CHECK_DEADLINE_S, storage_fault
from events.loggers import get_logger

ROOM_BYTES = 16 * 1024 * 1024
"""Bytes that must be free before the server is restarted: with less, the disk would be full again at once."""

ROOM_INODES = 64
"""Inodes that must be free before the server is restarted: a stream's next block is a new file."""

_FAILURE = "write error"
"""What the server's health says of a stream that stores nothing any more."""

_TIMEOUT_S = 2.0
_logger = get_logger("neuraxis.broker")


STORE_GONE = "the files of the broker's store are gone"
"""The beginning of a fault's text if the files are gone."""

STORE_REMEDY = (
    "copy the log while the broker still has it (`neuraxis log export --format bundle`), stop the set, and start it on "
    "that copy (`neuraxis restore`), or with the files put back"
)


def own_store(data: Path, contexts: str) -> Path | None:
    """Return the folder of the streams of a set's own broker; None for another broker.

    Args:
        data: The set's data folder.
        contexts: The folder of its logins, as ``run.json`` names it.
    """
    layout = Layout((data / "broker").resolve())
    return layout.store if contexts and Path(contexts).is_relative_to(layout.folder) else None


async def storing_fault(
    connection: Connection, stream: str, store: Path | None, deadline_s: float = CHECK_DEADLINE_S
) -> str:
    """Return why a broker stores nothing in a stream, by its answers and, of an embedded one, by its files.

    Empty when it stores. ``store`` is the folder of its streams, None where that is not on this machine; for the other
    arguments see :func:`storage_fault`.
    """
    most = await asyncio.to_thread(store_limit, store)
    fault = await storage_fault(connection, stream, deadline_s, server_most=most)
    return fault or await asyncio.to_thread(store_fault, store, stream)


def store_limit(store: Path | None) -> int:
    """Return how many bytes an embedded server may store, by its configuration; 0 if that is not known.

    ``store`` is None where its files are not on this machine.
    """
    if store is None:
        return 0
    try:
        return int(msgspec.json.decode(Layout(store.parent).configuration.read_bytes())["jetstream"]["max_file_store"])
    except (OSError, msgspec.DecodeError, KeyError, TypeError, ValueError):
        return 0


def store_fault(store: Path | None, stream: str) -> str:
    """Return what is wrong with the files of a running server's stream, without naming them.

    Empty if they are there, or if that cannot be seen: out of file descriptors, say, or without the right to look.
    ``store`` is None where the files are not on this machine.
    """
    if store is None:
        return ""
    try:
        accounts = os.listdir(store / "jetstream")
        folders = [store / "jetstream" / account / "streams" / stream for account in accounts]
        if any(_exists(folder / "meta.inf") and _exists(folder / "msgs") for folder in folders):
            return ""
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError:
        return ""
    return f"{STORE_GONE}: it still has what they held, and that and whatever is stored now is lost when it ends"


def _exists(path: Path) -> bool:
    """Whether a file or folder is there; raises OSError if that cannot be seen, where ``Path.exists`` may say no."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


async def storing_failure(system: Access) -> str:
    """Ask the server, as its system user, why it stores nothing any more; empty if it stores, or does not answer."""
    try:
        async with await Connection.open(system) as connection:
            answer = await connection.request("$SYS.REQ.SERVER.PING.HEALTHZ", deadline=_TIMEOUT_S)
        health: Mapping[str, Any] = msgspec.json.decode(answer.data, type=dict[str, Any]).get("data") or {}
    except (LogError, msgspec.DecodeError):
        return ""
    error = str(health.get("error", ""))
    return error if _FAILURE in error else ""


class Room(NamedTuple):
    """What is free on a disk: bytes, and files that can still be made (None: as many as there are bytes for)."""

    bytes: int
    inodes: int | None

    @property
    def is_enough(self) -> bool:
        """Whether a server that is started again could go on for a while."""
        return self.bytes >= ROOM_BYTES and (self.inodes is None or self.inodes >= ROOM_INODES)

    def __str__(self) -> str:
        inodes = "" if self.inodes is None else f", {self.inodes:,} inodes"
        return f"{self.bytes / 1e6:,.1f} MB{inodes} free"


def room_on_disk(folder: Path) -> Room:
    """Return what is free on a folder's disk; raises OSError if there is no such folder."""
    found = os.statvfs(folder)
    return Room(found.f_bavail * found.f_frsize, found.f_favail if found.f_files else None)


async def restart_when_disk_has_space(
    process: Process, system: Access, store: Path, *, stream: str, stop_deadline: float, check_every_s: float
) -> None:
    """End a server that stores nothing any more as soon as its disk has space; the supervisor then starts it again.

    Args:
        process: The server.
        system: How to connect as its system user.
        store: The folder of its streams.
        stream: The stream that holds the log, and whose files are there; empty: they are not watched.
        stop_deadline: Seconds that the server may take to end.
        check_every_s: Seconds between two checks.
    """
    is_logged = is_gone = False
    while True:
        await asyncio.sleep(check_every_s)
        if fault := store_fault(store if stream else None, stream):
            # The server is not restarted: while it runs, it still has the deleted files open.
            if not is_gone:
                _logger.error("broker_store_gone", store=str(store), detail=fault, remedy=STORE_REMEDY)
            is_gone = True
            continue
        is_gone = False
        failure = await storing_failure(system)
        if not failure:
            continue
        try:
            room = room_on_disk(store)
        except OSError as wrong:  # the disk may be mounted again, so go on watching
            _logger.debug("disk_not_seen", store=str(store), error=wrong.strerror)
            continue
        if room.is_enough:
            _logger.warning("broker_starts_anew", reason=failure, free_bytes=room.bytes)
            await end(process, stop_deadline)
            return
        if not is_logged:
            _logger.error(
                "broker_stores_nothing",
                reason=failure,
                free_bytes=room.bytes,
                free_inodes=room.inodes,
                room_bytes=ROOM_BYTES,
                room_inodes=ROOM_INODES,
            )
            is_logged = True
