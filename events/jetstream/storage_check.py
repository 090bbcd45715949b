"""Whether the broker can store messages now: a check that any user who may read the stream can make.

A broker on a full disk still answers queries, from memory, but never answers an append. It cannot make a consumer whose
position is kept on disk either, since that needs a new file beside the stream's messages. The same holds once the disk
has no inode left, though it still stores single events until the stream needs its next file. So the check makes such a
consumer, and deletes it again. It also reads the limits of the stream and of the account, which can be reached while
the disk still has room. A log whose words are encrypted takes no new session without the bucket of its keys, so that
bucket's limits are read, too.
"""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from events.errors import LogError, NoLeader, NotPermitted, Unavailable
from events.jetstream.connection import ApiError, Connection
from events.jetstream.stream import JETSTREAM_OFF, NOT_FOUND, is_sealed
from events.log import MAX_RECORD_BYTES
from schemas.permissions import keys_bucket

CHECK_DEADLINE_S = 2.0
"""Seconds that the whole check may take."""

NO_STREAM = "the broker holds no stream"
"""Beginning of the text of :func:`storage_fault` where the stream does not exist."""

SWITCHED_OFF = "the broker has JetStream switched off"
KEYS_GONE = "the bucket of the sessions' keys is gone"
AT_LIMIT = "at its limit of"
CANNOT_WRITE = "the broker cannot write to its store"
"""Parts of the texts of other faults."""

LEADERLESS = "the broker's cluster has no leader: most of its servers are away, or it is choosing one"
"""The text for a cluster without a majority."""

MAY_NOT_ASK = "this login may not ask the broker whether it stores"
"""The text for a login without that right: whether the broker stores is not known then."""

_NEXT_TO_NOTHING = 0.02
"""A limit in bytes counts as reached when less than this share of it is left, and less than the largest record takes.

A broker refuses what would go beyond a limit, so hardly ever is one reached to the byte.
"""

_SOON_S = 0.5
"""Seconds in which one server of a cluster should have answered; then others are tried."""

_MOST_TRIED = 16
"""Most further consumers that are made, to find a majority of the servers that store. Where two of three do, one check
in 300 does not meet both."""

_AT_ONCE = 3
"""Consumers that are being made at a time. Those that take longer than :data:`_SOON_S` do not count."""

# JetStream error codes: the store cannot be written; the server has no storage left.
_STORE_FAILED = (10012, 10104)
_OUT_OF_STORAGE = (10023, 10047)
_NS_PER_S = 1_000_000_000


async def storage_fault(
    connection: Connection, stream: str, deadline_s: float = CHECK_DEADLINE_S, *, server_most: int = 0
) -> str:
    """Return why the broker stores nothing in a stream now, for people; empty when it stores.

    It names no host or path, since a gateway's public probes show it. ``server_most`` is how many bytes the server
    itself may store, which no answer tells; 0: that is not known.
    """
    if not connection.connected:
        return "the broker is away"
    try:
        async with asyncio.timeout(deadline_s):
            return await _fault(connection, stream, server_most)
    except TimeoutError:
        return f"the broker has not answered within {deadline_s:g} s"
    except NotPermitted:
        return MAY_NOT_ASK
    except LogError as wrong:
        return str(wrong)


async def _fault(connection: Connection, stream: str, server_most: int) -> str:
    try:
        account = await connection.api("INFO")
        found = await connection.api(f"STREAM.INFO.{stream}")
    except NoLeader:
        return LEADERLESS
    except NotPermitted:
        raise
    except Unavailable:
        return SWITCHED_OFF if connection.connected else "the broker is away"
    except ApiError as error:
        if error.number in JETSTREAM_OFF:
            return SWITCHED_OFF
        return f"{NO_STREAM} {stream}" if error.status == 404 else str(error)
    fault = _stream_fault(found["config"], found["state"]) or _account_fault(account)
    fault = fault or _server_fault(account, server_most)
    if not fault and is_sealed(found["config"]):
        fault = await _keys_fault(connection, stream)
    return fault or await _disk_fault(connection, stream, int(found["config"].get("num_replicas", 1)))


async def _keys_fault(connection: Connection, stream: str) -> str:
    """Return why no session's key can be stored; empty if one can, as far as its bucket's limits go."""
    try:
        found = await connection.api(f"STREAM.INFO.KV_{keys_bucket(stream)}")
    except NoLeader:
        return f"{LEADERLESS} (of the bucket of the sessions' keys)"
    except ApiError as error:
        if error.number != NOT_FOUND:
            raise
        return f"{KEYS_GONE}: put back a copy of the broker's store that holds it"
    return _stream_fault(found["config"], found["state"])


def _stream_fault(config: Mapping[str, Any], state: Mapping[str, Any]) -> str:
    if config.get("sealed"):  # closed for good, in JetStream's words; it is not about encryption
        return f"stream {config['name']} is sealed at the broker: it takes no more messages"
    for limit, what in (("max_msgs", "messages"), ("max_bytes", "bytes")):
        most = int(config.get(limit, -1))
        if 0 < most <= int(state[what]) + (_next_to_nothing(most) if limit == "max_bytes" else 0):
            return f"stream {config['name']} is {AT_LIMIT} {most:,} {what} ({limit}): raise it"
    return ""


def _account_fault(account: Mapping[str, Any]) -> str:
    most = int(account.get("limits", {}).get("max_storage", -1))
    if 0 < most <= int(account.get("storage", 0)) + _next_to_nothing(most):
        return f"the account at the broker is {AT_LIMIT} {most:,} bytes (max_storage): raise it"
    return ""


def _server_fault(account: Mapping[str, Any], most: int) -> str:
    if 0 < most <= int(account.get("storage", 0)) + _next_to_nothing(most):
        return (
            f"the broker's store is {AT_LIMIT} {most:,} bytes (broker.max_store_bytes): raise it; without that setting,"
            " make room on the disk and start the set again"
        )
    return ""


def _next_to_nothing(most: int) -> int:
    """Return how many bytes below a limit are too few to go on with."""
    return min(MAX_RECORD_BYTES, int(most * _NEXT_TO_NOTHING))


async def _disk_fault(connection: Connection, stream: str, replicas: int) -> str:
    """Return why no consumer can be made whose position is kept on disk; empty if one can.

    In a cluster the broker puts each on any of the servers with a copy of the stream. Appends go on while most of
    these can store, so others are tried where one cannot, or does not answer: a few at a time, since a cluster that is
    only slow would get slower.
    """
    if replicas == 1:
        return (await _consumer_fault(connection, stream))[0]
    first = asyncio.create_task(_consumer_fault(connection, stream))
    tried, late = [first], set[asyncio.Task[tuple[str, str]]]()
    try:
        while running := {each for each in tried if not each.done()}:
            ended, _ = await asyncio.wait(running, timeout=_SOON_S, return_when=asyncio.FIRST_COMPLETED)
            found = [each.result() for each in tried if each.done()]
            storing = {server for fault, server in found if not fault}
            if (first.done() and not first.result()[0]) or len(storing) > replicas // 2:
                return ""
            if not ended:
                late |= running
            room = min(_AT_ONCE - len(running - ended - late), 1 + _MOST_TRIED - len(tried))
            tried += [asyncio.create_task(_consumer_fault(connection, stream)) for _ in range(room)]
        return first.result()[0]
    finally:
        for each in tried:
            each.cancel()
        await asyncio.gather(*tried, return_exceptions=True)


async def _consumer_fault(connection: Connection, stream: str) -> tuple[str, str]:
    """Make such a consumer, and delete it again; return why that fails, empty if it does not, and its server.

    Raises:
        NotPermitted: this login may not make one.
    """
    name = f"nx-{connection.access.user or 'any'}-look-{connection.new_name()}"
    config = {
        "name": name,
        "deliver_policy": "new",
        "ack_policy": "none",
        "mem_storage": False,
        "num_replicas": 1,
        "inactive_threshold": 5 * _NS_PER_S,
    }
    may_exist = True  # also where the answer is late, or nobody waits for it any more
    try:
        made = await connection.api(
            f"CONSUMER.CREATE.{stream}.{name}", {"stream_name": stream, "config": config, "action": "create"}
        )
        return "", str((made.get("cluster") or {}).get("leader", ""))
    except NotPermitted:
        may_exist = False
        raise
    except ApiError as error:
        may_exist = False
        return _refusal(error), ""
    except LogError as error:
        return str(error), ""
    finally:
        if may_exist:
            with suppress(LogError):  # nobody waits for the answer: an idle consumer expires by itself
                await connection.publish(f"$JS.API.CONSUMER.DELETE.{stream}.{name}", b"")


def _refusal(error: ApiError) -> str:
    if error.number in _STORE_FAILED:  # the server tells its own log which of these it is
        return (
            f"{CANNOT_WRITE}: its disk is full, out of inodes, or read-only, or it has no file descriptors left; "
            "make room"
        )
    if error.number in _OUT_OF_STORAGE:
        return "the broker has no room left for streams (max_file_store): raise it, or make room"
    return str(error)
