"""Whether the broker can store messages now: a check that any user who may read the stream can make.

A broker on a full disk still answers queries, from memory, but never answers an append. It cannot make a consumer whose
position is kept on disk either, since that needs a new file beside the stream's messages. The same holds once the disk
has no inode left, though it still stores single events until the stream needs its next file. So the check makes such a
consumer, and deletes it again. It also reads the limits of the stream and of the account, which can be reached while
the disk still has room.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

from events.errors import LogError, Unavailable
from events.jetstream.connection import ApiError, Connection
from events.jetstream.stream import JETSTREAM_OFF

CHECK_DEADLINE_S = 2.0
"""Seconds that the whole check may take."""

NO_STREAM = "the broker holds no stream"
"""Beginning of the fault's text where the stream does not exist."""

# JetStream error codes: the store cannot be written; the server has no storage left.
_STORE_FAILED = (10012, 10104)
_OUT_OF_STORAGE = (10023, 10047)
_NS_PER_S = 1_000_000_000


async def storage_fault(connection: Connection, stream: str, deadline_s: float = CHECK_DEADLINE_S) -> str:
    """Return why the broker stores nothing in a stream now, for people; empty when it does.

    It names no host or path, since a gateway's public probes show it.
    """
    if not connection.connected:
        return "the broker is away"
    try:
        async with asyncio.timeout(deadline_s):
            return await _fault(connection, stream)
    except TimeoutError:
        return f"the broker has not answered within {deadline_s:g} s"
    except LogError as wrong:
        return str(wrong)


async def _fault(connection: Connection, stream: str) -> str:
    try:
        account = await connection.api("INFO")
        found = await connection.api(f"STREAM.INFO.{stream}")
    except Unavailable:
        return "the broker has JetStream switched off" if connection.connected else "the broker is away"
    except ApiError as error:
        if error.number in JETSTREAM_OFF:
            return "the broker has JetStream switched off"
        return f"{NO_STREAM} {stream}" if error.status == 404 else str(error)
    return _limit_fault(found["config"], found["state"], account) or await _disk_fault(connection, stream)


def _limit_fault(config: Mapping[str, Any], state: Mapping[str, Any], account: Mapping[str, Any]) -> str:
    if config.get("sealed"):
        return f"stream {config['name']} is sealed at the broker: it takes no more messages"
    for limit, what in (("max_msgs", "messages"), ("max_bytes", "bytes")):
        most = int(config.get(limit, -1))
        if 0 < most <= int(state[what]):
            return f"stream {config['name']} is at its limit of {most:,} {what} ({limit}): raise it"
    limits = account.get("limits", {})
    most = int(limits.get("max_storage", -1))
    if 0 < most <= int(account.get("storage", 0)):
        return f"the account at the broker is at its limit of {most:,} bytes (max_storage): raise it"
    return ""


async def _disk_fault(connection: Connection, stream: str) -> str:
    name = f"nx-{connection.access.user or 'any'}-look-{connection.new_name()}"
    config = {
        "name": name,
        "deliver_policy": "new",
        "ack_policy": "none",
        "mem_storage": False,
        "num_replicas": 1,
        "inactive_threshold": 5 * _NS_PER_S,
    }
    try:
        await connection.api(
            f"CONSUMER.CREATE.{stream}.{name}", {"stream_name": stream, "config": config, "action": "create"}
        )
    except ApiError as error:
        if error.number in _STORE_FAILED:
            return "the broker cannot write to its store: its disk is full, out of inodes, or read-only; make room"
        if error.number in _OUT_OF_STORAGE:
            return "the broker has no room left for streams (max_file_store): raise it, or make room"
        return str(error)
    # Nobody waits for the answer: an idle consumer expires by itself.
    await connection.publish(f"$JS.API.CONSUMER.DELETE.{stream}.{name}", b"")
    return ""
