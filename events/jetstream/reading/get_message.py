"""Getting one message of a stream by its sequence, from the stream's leader."""

import base64
from calendar import timegm
from collections.abc import Mapping
from time import strptime
from typing import Any

import msgspec

from events.jetstream.connection import ApiError, Connection
from events.jetstream.header_client import read_headers
from events.jetstream.reading.leader import AbsenceCheck

NO_MESSAGE = 10037
"""JetStream's error code for a message that is not there, or cannot be read."""


class StreamMessage(msgspec.Struct, frozen=True):
    """A message as the server holds it; ``time_ns`` is the server's own timestamp, Unix nanoseconds."""

    seq: int
    time_ns: int
    subject: str
    headers: dict[str, str]
    data: bytes


async def find_message(connection: Connection, stream: str, wanted: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the message that a request names (by ``seq`` or ``last_by_subj``) as the server answers, None for none.

    Raises LogError.
    """
    try:
        found = await connection.api(f"STREAM.MSG.GET.{stream}", wanted)
    except ApiError as error:
        if error.number != NO_MESSAGE:
            raise
        return None
    message: dict[str, Any] = found["message"]
    return message


async def get_message(connection: Connection, stream: str, seq: int) -> StreamMessage | None:
    """Return the message at a sequence, None when there is none or the server cannot read it; raises LogError.

    In a cluster it takes ``leader.ABSENT_FOR_S`` seconds to be certain that there is none.
    """
    if seq < 1:
        return None
    check = AbsenceCheck(connection, stream)
    while (message := await find_message(connection, stream, {"seq": seq})) is None:
        if await check.is_certain():
            return None
    return StreamMessage(
        int(message["seq"]),
        unix_ns(message["time"]),
        message["subject"],
        read_headers(base64.b64decode(message.get("hdrs", ""))),
        base64.b64decode(message.get("data", "")),
    )


def unix_ns(written: str) -> int:
    """Return a server's timestamp (RFC 3339 in UTC, up to nine digits of a second) as Unix nanoseconds."""
    seconds, _, fraction = written.rstrip("Z").partition(".")
    return timegm(strptime(seconds, "%Y-%m-%dT%H:%M:%S")) * 1_000_000_000 + int(fraction.ljust(9, "0") or "0")
