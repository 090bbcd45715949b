"""Key-value buckets of JetStream, and membership in one.

They use a bucket's own subjects (``$KV.<bucket>.<key>``) directly: one request for each call. nats-py's listing of keys
would make a consumer each time.
"""

import json
import time
from collections.abc import Mapping

from events.errors import Conflict, LogError, Unavailable
from events.jetstream.connection import Connection
from events.jetstream.stream import WRONG_LAST_SEQUENCE, find_stream, make_stream
from events.loggers import get_logger
from schemas.permissions import MEMBERS_BUCKET

_logger = get_logger("neuraxis.broker")

MEMBER_EXPIRY = 3.0
"""Seconds after its last heartbeat that a member counts as dead."""

SILENT_S = 2 * MEMBER_EXPIRY
"""Seconds without a new heartbeat after which a member counts as dead although the broker still keeps the last one.

The broker goes by the time of day: after its clock was set back by an hour, it would keep a dead worker's heartbeat for
an hour.
"""

KEY_SEPARATOR = "/"
"""What stands for the dots of a key where the key is a single token of a subject."""

_NS_PER_S = 1_000_000_000


async def ensure_bucket(
    connection: Connection,
    bucket: str,
    *,
    storage: str,
    max_age: float,
    replicas: int,
    erasable: bool = False,
    history: int = 1,
) -> None:
    """Make a bucket if it does not exist.

    ``max_age``: seconds for which a value is kept, 0: for ever. ``erasable``: values can be overwritten on disk.
    ``history``: values that are kept of each key.
    """
    config = {
        "name": f"KV_{bucket}",
        "subjects": [f"$KV.{bucket}.>"],
        "storage": storage,
        "max_msgs_per_subject": history,
        "max_age": int(max_age * _NS_PER_S),
        "discard": "new",
        "allow_direct": True,
        "allow_rollup_hdrs": False,  # by a roll-up, who may write one value could remove all of them
        "deny_delete": not erasable,
        "duplicate_window": int(min(max_age or 120, 120) * _NS_PER_S),
        "num_replicas": replicas,
    }
    if await find_stream(connection, f"KV_{bucket}") is None:
        await make_stream(connection, config)


async def refuse_roll_ups(connection: Connection, *buckets: str) -> None:
    """Have buckets of an earlier checkout, which are there, refuse roll-ups as new ones do.

    Only for a login that may change streams: another one is left without an answer, waits for it, and leaves them as
    they are, which this process's log says.
    """
    for bucket in buckets:
        found = await find_stream(connection, f"KV_{bucket}")
        if found is None or not found["config"].get("allow_rollup_hdrs"):
            continue
        try:
            await connection.api(f"STREAM.UPDATE.KV_{bucket}", found["config"] | {"allow_rollup_hdrs": False})
        except LogError as error:
            remedy = "run `neuraxis deploy streams` with a login that may change streams, such as admin"
            _logger.warning("buckets_take_roll_ups", bucket=bucket, error=str(error), remedy=remedy)
            return


async def put(
    connection: Connection, bucket: str, key: str, data: bytes, headers: dict[str, str] | None, root: str = ""
) -> int:
    """Store a value; return its sequence. Below ``root`` a key is a single token.

    Raises:
        Conflict: the headers name the value that it is to replace, and another one is there.
        Unavailable: the bucket does not take it; or as ``Connection.request`` does.
    """
    subject = f"{root}.{key.replace('.', KEY_SEPARATOR)}" if root else f"$KV.{bucket}.{key}"
    answer = await connection.request(subject, data, headers=headers)
    if b'"error"' in answer.data:
        refused = f"bucket {bucket} did not take {key}: {answer.data[:200].decode(errors='replace')}"
        number = (json.loads(answer.data).get("error") or {}).get("err_code")
        raise Conflict(refused) if number in WRONG_LAST_SEQUENCE else Unavailable(refused)
    return int(json.loads(answer.data)["seq"])


class KeyValueMembership:
    """Members as keys of a bucket in memory that forgets them after :data:`MEMBER_EXPIRY` seconds.

    In memory, because a heartbeat is worth nothing after a restart and should cost no disk flush. A server that is
    restarted has then lost the bucket itself, so it is kept on disk (``lasting``) where workers may not make it again.
    """

    def __init__(self, connection: Connection, replicas: int = 1) -> None:
        self._connection = connection
        self._replicas = replicas
        self._seen: dict[str, tuple[str, float]] = {}  # member -> its last heartbeat's sequence, and since when known

    @classmethod
    async def over(cls, connection: Connection, replicas: int = 1, *, lasting: bool = False) -> "KeyValueMembership":
        """Return the membership; makes the bucket if it does not exist."""
        storage = "file" if lasting else "memory"
        await ensure_bucket(connection, MEMBERS_BUCKET, storage=storage, max_age=MEMBER_EXPIRY, replicas=replicas)
        return cls(connection, replicas)

    async def beat(self, worker: str, value: bytes) -> None:
        """Renew a membership; a bucket lost in a restart of the broker is made again."""
        try:
            await put(self._connection, MEMBERS_BUCKET, worker, value, None)
        except Unavailable:
            if self._connection.connected:
                await self.over(self._connection, self._replicas)
            raise

    async def leave(self, worker: str) -> None:
        """End a membership at once."""
        await put(self._connection, MEMBERS_BUCKET, worker, b"", {"KV-Operation": "DEL"})

    async def members(self) -> Mapping[str, bytes]:
        """Return the living members and their last heartbeats; one request whatever their number."""
        prefix, now = f"$KV.{MEMBERS_BUCKET}.", time.monotonic()
        asked = f"$JS.API.DIRECT.GET.KV_{MEMBERS_BUCKET}", b'{"multi_last":["' + prefix.encode() + b'>"]}'
        try:
            answers = [answer async for answer in self._connection.gather(*asked)]
        except LogError:
            self._seen = {}  # while the broker does not answer, nobody can be heard
            raise
        found: dict[str, bytes] = {}
        seen: dict[str, tuple[str, float]] = {}
        for answer in answers:
            member, sequence = answer.headers["Nats-Subject"].removeprefix(prefix), answer.headers["Nats-Sequence"]
            known, since = self._seen.get(member, ("", now))
            seen[member] = sequence, since if known == sequence else now
            if "KV-Operation" not in answer.headers and now - seen[member][1] <= SILENT_S:
                found[member] = answer.data
        self._seen = seen
        return found
