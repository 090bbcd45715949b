"""Snapshots and membership in JetStream key-value buckets.

Both use the bucket's own subjects (``$KV.<bucket>.<key>``) directly: one request for each call. nats-py's listing of
keys would make a consumer each time.
"""

import asyncio
import json
import zlib
from collections.abc import Mapping
from hashlib import sha256

from events.errors import LogError, Unavailable, UnknownOutcome
from events.jetstream.connection import ApiError, Connection, Reply
from events.jetstream.stream import NOT_FOUND, make_stream
from events.loggers import get_logger
from schemas.permissions import MEMBERS_BUCKET, SNAPSHOTS_BUCKET

MEMBER_EXPIRY = 3.0
"""Seconds after its last heartbeat that a member counts as dead."""

_CHUNK = 512 * 1024  # bytes of a snapshot in one message
KEY_SEPARATOR = "/"
"""What stands for the dots of a key where the key is a single token of a subject."""

_UPTO_HEADER = "nx-upto"
"""Header of a snapshot: the sequence up to which every message of its partition is in it."""

_NS_PER_S = 1_000_000_000
_logger = get_logger("neuraxis.buckets")


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
        "allow_rollup_hdrs": True,
        "deny_delete": not erasable,
        "duplicate_window": int(min(max_age or 120, 120) * _NS_PER_S),
        "num_replicas": replicas,
    }
    try:
        await connection.api(f"STREAM.INFO.KV_{bucket}")
    except ApiError as error:
        if error.number != NOT_FOUND:
            raise
        await make_stream(connection, config)


async def _put(
    connection: Connection, bucket: str, key: str, data: bytes, headers: dict[str, str] | None, root: str = ""
) -> int:
    """Store a value; return its sequence. Below ``root`` a key is a single token."""
    subject = f"{root}.{key.replace('.', KEY_SEPARATOR)}" if root else f"$KV.{bucket}.{key}"
    answer = await connection.request(subject, data, headers=headers)
    if b'"error"' in answer.data:
        raise Unavailable(f"bucket {bucket} did not take {key}: {answer.data[:200].decode(errors='replace')}")
    return int(json.loads(answer.data)["seq"])


class KeyValueMembership:
    """Members as keys of a bucket in memory that forgets them after :data:`MEMBER_EXPIRY` seconds.

    In memory, because a heartbeat is worth nothing after a restart and should cost no disk flush. A server that is
    restarted has then lost the bucket itself, so it is kept on disk (``lasting``) where workers may not make it again.
    """

    def __init__(self, connection: Connection, replicas: int = 1) -> None:
        self._connection = connection
        self._replicas = replicas

    @classmethod
    async def over(cls, connection: Connection, replicas: int = 1, *, lasting: bool = False) -> "KeyValueMembership":
        """Return the membership; makes the bucket if it does not exist."""
        storage = "file" if lasting else "memory"
        await ensure_bucket(connection, MEMBERS_BUCKET, storage=storage, max_age=MEMBER_EXPIRY, replicas=replicas)
        return cls(connection, replicas)

    async def beat(self, worker: str, value: bytes) -> None:
        """Renew a membership; a bucket lost in a restart of the broker is made again."""
        try:
            await _put(self._connection, MEMBERS_BUCKET, worker, value, None)
        except Unavailable:
            if self._connection.connected:
                await self.over(self._connection, self._replicas)
            raise

    async def leave(self, worker: str) -> None:
        """End a membership at once."""
        await _put(self._connection, MEMBERS_BUCKET, worker, b"", {"KV-Operation": "DEL"})

    async def members(self) -> Mapping[str, bytes]:
        """Return the living members and their last heartbeats; one request whatever their number."""
        found: dict[str, bytes] = {}
        prefix = f"$KV.{MEMBERS_BUCKET}."
        async for answer in self._connection.gather(
            f"$JS.API.DIRECT.GET.KV_{MEMBERS_BUCKET}", b'{"multi_last":["' + prefix.encode() + b'>"]}'
        ):
            if "KV-Operation" not in answer.headers:
                found[answer.headers["Nats-Subject"].removeprefix(prefix)] = answer.data
        return found


def _compressed(data: bytes) -> tuple[bytes, str]:
    packed = zlib.compress(data, 1)
    return packed, sha256(packed).hexdigest()


class KeyValueSnapshots:
    """The newest snapshot of each partition, compressed, in chunks that fit a message.

    The chunks are written first and the head last, so that a reader sees a whole snapshot or the one before. The
    replaced snapshot is overwritten on disk: it may hold words that are to be forgotten.
    """

    def __init__(self, connection: Connection, root: str = "") -> None:
        self._connection = connection
        self._root = root

    @classmethod
    async def over(cls, connection: Connection, replicas: int = 1, root: str = "") -> "KeyValueSnapshots":
        """Return the store; makes the bucket if it does not exist.

        ``root`` is for a command that writes snapshots while the bucket refuses those of workers: the bucket then takes
        values on the subjects ``root.KEY`` alone, where KEY is one token with :data:`KEY_SEPARATOR` in place of dots.
        """
        # Two values per key: a value that the limit pushes out is removed without being overwritten on disk.
        await ensure_bucket(
            connection, SNAPSHOTS_BUCKET, storage="file", max_age=0, replicas=replicas, erasable=True, history=2
        )
        return cls(connection, root)

    async def save(self, key: str, data: bytes, upto: int) -> None:
        """Replace the snapshot under ``key``; every message of its partition up to sequence ``upto`` is in it."""
        if len(data) > _CHUNK:  # in another thread: it takes a second for a hundred megabytes
            packed, digest = await asyncio.to_thread(_compressed, data)
        else:
            packed, digest = _compressed(data)
        replaced = await self._get(key)
        chunks = [packed[start : start + _CHUNK] for start in range(_CHUNK, len(packed), _CHUNK)]
        written = [
            await _put(self._connection, SNAPSHOTS_BUCKET, f"{key}.{number}", chunk, {"nx-of": digest}, self._root)
            for number, chunk in enumerate(chunks, 1)
        ]
        head = {"nx-chunks": str(len(chunks)), "nx-sha256": digest, "nx-written": ",".join(map(str, written))}
        head[_UPTO_HEADER] = str(upto)
        await _put(self._connection, SNAPSHOTS_BUCKET, key, packed[:_CHUNK], head, self._root)
        await self._erase(replaced)

    async def load(self, key: str, at_least: int = 0) -> bytes | None:
        """Return the snapshot under ``key``, or None when there is none or it is unreadable.

        Any server of a cluster answers, also one whose copy of the bucket lags and has an older snapshot. To fold on
        from that only takes longer, unless the log now begins behind it: ``at_least`` is the sequence to be reached.

        Raises:
            Unavailable, UnknownOutcome: it cannot be read now, or reaches less far. If that counted as no snapshot, a
                restart of the broker could make every partition fold the whole log.
        """
        try:
            head = await self._get(key)
            if head is None:
                return None
            if (upto := int(head.headers.get(_UPTO_HEADER, "0"))) < at_least:
                raise Unavailable(
                    f"the snapshot of {key} includes what there is up to sequence {upto}, and the log begins behind "
                    f"{at_least}: another server may have a newer one; else run `neuraxis log trim --snapshots`"
                )
            parts = [head.data]
            for number in range(1, int(head.headers.get("nx-chunks", "0")) + 1):
                chunk = await self._get(f"{key}.{number}")
                if chunk is None:
                    return None
                parts.append(chunk.data)
            packed = b"".join(parts)
            if sha256(packed).hexdigest() != head.headers.get("nx-sha256"):
                _logger.warning("snapshot_unusable", key=key, reason="its digest does not match")
                return None
            return zlib.decompress(packed)
        except (Unavailable, UnknownOutcome):
            if not await self._is_gone():
                raise
            _logger.warning("snapshot_unusable", key=key, reason="the bucket of snapshots is gone")
            return None
        except (LogError, ValueError, zlib.error) as wrong:
            _logger.warning("snapshot_unusable", key=key, reason=type(wrong).__name__)
            return None

    async def _is_gone(self) -> bool:
        """Whether the bucket does not exist. Then a read gets no answer, as from a bucket that is not up yet."""
        try:
            await self._connection.api(f"STREAM.INFO.KV_{SNAPSHOTS_BUCKET}")
        except ApiError:
            return True
        return False

    async def upto(self, key: str) -> int | None:
        """Return the sequence up to which everything is in the snapshot under ``key``; None when there is none.

        0 for a snapshot without the header ``nx-upto``. The time of saving would not do: its content may be older.
        """
        head = await self._get(key)
        return None if head is None else int(head.headers.get(_UPTO_HEADER, "0"))

    async def drop(self, key: str) -> None:
        """Erase the snapshot under ``key``: its partition will be folded from the log's start."""
        await self._erase(await self._get(key))

    async def _erase(self, head: Reply | None) -> None:
        """Have the server overwrite a snapshot that was read: its head and its chunks."""
        if head is None:
            return
        chunks = head.headers.get("nx-written", "")
        for seq in (head.headers["Nats-Sequence"], *(chunks.split(",") if chunks else ())):
            try:
                await self._connection.api(f"STREAM.MSG.DELETE.KV_{SNAPSHOTS_BUCKET}", {"seq": int(seq)})
            except ApiError as error:
                # Gone already; or a bucket of an earlier release, which overwrites nothing of what it removes.
                _logger.debug("snapshot_not_erased", seq=seq, error=str(error))

    async def _get(self, name: str) -> Reply | None:
        subject = f"$JS.API.DIRECT.GET.KV_{SNAPSHOTS_BUCKET}.$KV.{SNAPSHOTS_BUCKET}.{name}"
        answer = await self._connection.request(subject)
        return None if answer.headers.get("Status") == "404" else answer
