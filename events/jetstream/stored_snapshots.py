"""Snapshots in a key-value bucket of JetStream: the newest of each partition, in chunks that fit a message.

A snapshot is a head under its partition's key, and chunks under names of their own, which begin with that key. The
chunks are written first and the head last. Chunks of two snapshots never have the same name. So a reader sees a whole
snapshot, the new one or the one before, and a kill or a full disk while one is saved costs only the new one. With equal
names, either would leave the head of one snapshot with chunks of another. If the log's beginning has been removed, no
state could be folded any more then.

The head is written on the condition that it replaces the one that was there when the state was taken. A process that
led the partition then, and is slow, may save long after its successor has: its older snapshot may hold words that were
to be forgotten meanwhile.
"""

import asyncio
import zlib
from collections.abc import AsyncIterator
from hashlib import sha256

from events.errors import Conflict, LogError, Unavailable, UnknownOutcome
from events.jetstream.connection import ApiError, Connection, Reply
from events.jetstream.key_value import ensure_bucket, put
from events.jetstream.reading.get_message import unix_ns
from events.jetstream.stream import EXPECTED
from events.loggers import get_logger
from schemas.permissions import SNAPSHOTS_BUCKET

_CHUNK = 512 * 1024  # bytes of a snapshot in one message
_STREAM = f"KV_{SNAPSHOTS_BUCKET}"
_ROOT = f"$KV.{SNAPSHOTS_BUCKET}."

_UPTO = "nx-upto"
"""Header of a snapshot: the sequence up to which every message of its partition is in it."""

_PART = "nx-part"
"""Header of a snapshot: the part of its chunks' names between its key and a number; earlier releases had none."""

_PART_DIGITS = 16
"""Digits of a snapshot's digest in the names of its chunks."""

UNDER_WAY_NS = 60 * 1_000_000_000
"""Chunks that no head names, if younger than this many nanoseconds, may be of a snapshot that is being saved."""

_LOADS = 3
"""How often reading a snapshot is tried, since it may be replaced meanwhile."""

_ELSEWHERE = "another server may have a newer one; else run `neuraxis log trim --snapshots`"

_logger = get_logger("neuraxis.buckets")


class KeyValueSnapshots:
    """The newest snapshot of each partition, compressed.

    The replaced snapshot is overwritten on disk: it may hold words that are to be forgotten. So are leftovers of
    one that was not saved whole, when another is saved a minute later or more.
    """

    def __init__(self, connection: Connection, root: str = "") -> None:
        self._connection = connection
        self._root = root
        self._saved: dict[str, int] = {}  # key -> the revision that was saved here last
        self._heads: dict[str, Reply] = {}  # key -> the head whose revision was asked for, without its data

    @classmethod
    async def over(cls, connection: Connection, replicas: int = 1, root: str = "") -> "KeyValueSnapshots":
        """Return the store; makes the bucket if it does not exist.

        ``root`` is for a command that writes snapshots while the bucket refuses those of workers: the bucket then takes
        values on the subjects ``root.KEY`` alone, where KEY is one token; see ``key_value.KEY_SEPARATOR``.
        """
        # Two values a key: a value that the limit pushes out is removed without being overwritten on disk.
        await ensure_bucket(
            connection, SNAPSHOTS_BUCKET, storage="file", max_age=0, replicas=replicas, erasable=True, history=2
        )
        return cls(connection, root)

    async def revision(self, key: str) -> int:
        """Return the revision of the snapshot under ``key``, 0 when there is none; see ``events.log.Snapshots``."""
        saved, head = self._saved.pop(key, 0), await self._get(key)
        if head is None:
            return 0  # it was dropped since, or the bucket was made anew
        self._heads[key] = Reply(head.headers, b"")
        # Another server of a cluster may answer before it has what was saved here last.
        return max(saved, int(_sequence(head)))

    async def save(self, key: str, data: bytes, upto: int, replaces: int | None = None) -> None:
        """Replace the snapshot under ``key``; see ``events.log.Snapshots``."""
        if len(data) > _CHUNK:  # in another thread: it takes a second for a hundred megabytes
            packed, digest = await asyncio.to_thread(_compressed, data)
        else:
            packed, digest = _compressed(data)
        replaced, part = self._heads.pop(key, None), digest[:_PART_DIGITS]
        if replaced is None or int(_sequence(replaced)) != replaces:
            replaced = await self._get(key)
        chunks = [packed[start : start + _CHUNK] for start in range(_CHUNK, len(packed), _CHUNK)]
        written = [await self._put(_chunk_name(key, part, number), chunk) for number, chunk in enumerate(chunks, 1)]
        head = {"nx-chunks": str(len(chunks)), "nx-sha256": digest, "nx-written": ",".join(map(str, written))}
        head |= {_UPTO: str(upto), _PART: part} | ({} if replaces is None else {EXPECTED: str(replaces)})
        try:
            self._saved[key] = await self._put(key, packed[:_CHUNK], head)
        except Conflict:
            for seq in written:
                await self._erase_message(str(seq))
            raise
        await self._erase(replaced)
        await self._erase_left_over(key, part)

    async def load(self, key: str, at_least: int = 0) -> bytes | None:
        """Return the snapshot under ``key``, or None when there is none or it is unreadable.

        Any server of a cluster answers, also one whose copy of the bucket lags and has an older snapshot, or lacks a
        chunk. To fold on from that, or from the start, only takes longer, unless the log now begins behind it:
        ``at_least`` is the sequence to be reached.

        Raises:
            Unavailable, UnknownOutcome: it cannot be read now, or reaches less far. If that counted as no snapshot, a
                restart of the broker could make every partition fold the whole log.
        """
        try:
            head = await self._get(key)
            for _ in range(_LOADS):
                if head is None:
                    return None
                if (upto := int(head.headers.get(_UPTO, "0"))) < at_least:
                    raise Unavailable(
                        f"the snapshot of {key} includes what there is up to sequence {upto}, and the log begins "
                        f"behind {at_least}: {_ELSEWHERE}"
                    )
                if (packed := await self._packed(key, head)) is not None:
                    return zlib.decompress(packed)
                before, head = head, await self._get(key)
                if head is not None and _sequence(head) == _sequence(before):
                    break
            if at_least:
                raise Unavailable(f"a part of the snapshot of {key} is missing or damaged: {_ELSEWHERE}")
            _logger.warning("snapshot_unusable", key=key, reason="a part is missing, or its digest does not match")
            return None
        except (Unavailable, UnknownOutcome):
            if not await self._is_gone():
                raise
            _logger.warning("snapshot_unusable", key=key, reason="the bucket of snapshots is gone")
            return None
        except (LogError, ValueError, zlib.error) as wrong:
            _logger.warning("snapshot_unusable", key=key, reason=type(wrong).__name__)
            return None

    async def _packed(self, key: str, head: Reply) -> bytes | None:
        """Return a snapshot, still compressed; None if a chunk is missing, or all together have another digest.

        Chunks are missing, too, if it was replaced since its head was read.
        """
        parts = [head.data]
        for number in range(1, int(head.headers.get("nx-chunks", "0")) + 1):
            chunk = await self._get(_chunk_name(key, head.headers.get(_PART, ""), number))
            if chunk is None:
                return None
            parts.append(chunk.data)
        packed = b"".join(parts)
        return packed if sha256(packed).hexdigest() == head.headers.get("nx-sha256") else None

    async def _is_gone(self) -> bool:
        """Whether the bucket does not exist. Then a read gets no answer, as from a bucket that is not up yet."""
        try:
            await self._connection.api(f"STREAM.INFO.{_STREAM}")
        except ApiError:
            return True
        return False

    async def upto(self, key: str) -> int | None:
        """Return the sequence up to which everything is in the snapshot under ``key``; None when there is none.

        0 for a snapshot without the header ``nx-upto``. The time of saving would not do: its content may be older.
        """
        head = await self._get(key)
        return None if head is None else int(head.headers.get(_UPTO, "0"))

    async def drop(self, key: str) -> None:
        """Erase the snapshot under ``key``: its partition will be folded from the log's start."""
        await self._erase(await self._get(key))
        async for chunk in self._chunks_but(key, ""):
            await self._erase_message(_sequence(chunk))

    async def _erase(self, head: Reply | None) -> None:
        """Have the server overwrite a snapshot that was read: its head and its chunks."""
        if head is None:
            return
        chunks = head.headers.get("nx-written", "")
        await self._erase_message(_sequence(head))
        for seq in chunks.split(",") if chunks else ():
            await self._erase_message(seq)

    async def _erase_left_over(self, key: str, part: str) -> None:
        """Have the server overwrite the chunks that were left by a process which was killed while it saved or erased.

        Those of the last minute are left: another process, which led the partition before, may be saving them.
        """
        now_ns = 0
        async for chunk in self._chunks_but(key, part):
            if not now_ns and (head := await self._get(key)) is not None:
                now_ns = unix_ns(head.headers["Nats-Time-Stamp"])
            if unix_ns(chunk.headers["Nats-Time-Stamp"]) < now_ns - UNDER_WAY_NS:
                await self._erase_message(_sequence(chunk))

    async def _chunks_but(self, key: str, part: str) -> AsyncIterator[Reply]:
        """Yield the chunks below a key, except those of the snapshot with this ``part``; if it is empty, all."""
        below = {"subjects_filter": f"{_ROOT}{key}.>"}
        info = await self._connection.api(f"STREAM.INFO.{_STREAM}", below)
        for subject, count in (info["state"].get("subjects") or {}).items():
            if part and subject.startswith(f"{_ROOT}{key}.{part}-"):
                continue
            for _ in range(count):  # each read gets the last that is left there
                if (chunk := await self._get(subject.removeprefix(_ROOT))) is not None:
                    yield chunk

    async def _erase_message(self, seq: str) -> None:
        try:
            await self._connection.api(f"STREAM.MSG.DELETE.{_STREAM}", {"seq": int(seq)})
        except ApiError as error:
            # Gone already; or a bucket of an earlier release, which overwrites nothing of what it removes.
            _logger.debug("snapshot_not_erased", seq=seq, error=str(error))

    async def _put(self, name: str, data: bytes, headers: dict[str, str] | None = None) -> int:
        return await put(self._connection, SNAPSHOTS_BUCKET, name, data, headers, self._root)

    async def _get(self, name: str) -> Reply | None:
        answer = await self._connection.request(f"$JS.API.DIRECT.GET.{_STREAM}.{_ROOT}{name}")
        return None if answer.headers.get("Status") == "404" else answer


def _compressed(data: bytes) -> tuple[bytes, str]:
    packed = zlib.compress(data, 1)
    return packed, sha256(packed).hexdigest()


def _chunk_name(key: str, part: str, number: int) -> str:
    return f"{key}.{part}-{number}" if part else f"{key}.{number}"


def _sequence(message: Reply) -> str:
    return message.headers["Nats-Sequence"]
