"""The secrets of sessions in a JetStream key-value bucket; implements ``events.sealing.keys.KeyStore``.

People's words in a session are encrypted with a key that is made from its secret.
"""

import base64
from collections.abc import Collection, Mapping

import msgspec
from nats.aio.msg import Msg

from events.errors import Unavailable
from events.jetstream.connection import Connection
from events.jetstream.key_value import ensure_bucket
from events.jetstream.reading.get_message import find_message
from events.jetstream.stream import EXPECTED, WRONG_LAST_SEQUENCE
from events.sealing.keys import KeyEntry, Keyring
from schemas.permissions import keys_bucket

_DESTROYED_HEADERS = {"KV-Operation": "PURGE"}


class KeyValueKeys:
    """One key per session, under a name that shows neither agent nor session; the name of a destroyed key stays."""

    def __init__(self, connection: Connection, bucket: str) -> None:
        self._connection = connection
        self._bucket = bucket
        self._prefix = f"$KV.{bucket}."

    @classmethod
    async def over(cls, connection: Connection, stream: str, replicas: int = 1) -> "KeyValueKeys":
        """Return the keys of a stream; makes the bucket if it does not exist."""
        bucket = keys_bucket(stream)
        await ensure_bucket(connection, bucket, storage="file", max_age=0, replicas=replicas, erasable=True)
        return cls(connection, bucket)

    async def load(self, names: Collection[str]) -> Mapping[str, KeyEntry]:
        """Return what any replica holds under these names."""
        subjects = [self._prefix + name for name in names]
        return {
            answer.headers["Nats-Subject"].removeprefix(self._prefix): KeyEntry(
                int(answer.headers["Nats-Sequence"]), answer.data
            )
            async for answer in self._connection.latest(f"KV_{self._bucket}", subjects)
        }

    async def confirm(self, name: str) -> KeyEntry | None:
        """Return what the bucket's leader holds under a name."""
        message = await find_message(self._connection, f"KV_{self._bucket}", {"last_by_subj": self._prefix + name})
        if message is None:
            return None
        return KeyEntry(int(message["seq"]), base64.b64decode(message.get("data", "")))

    async def create(self, name: str, secret: bytes, revision: int) -> bool:
        """Store a secret where the name's entry is of this revision; see ``KeyStore``."""
        return await self._put(name, secret, {EXPECTED: str(revision)})

    async def destroy(self, name: str) -> bool:
        """Have the server overwrite a secret on disk, and store a marker in its place; see ``KeyStore``."""
        entry = await self.confirm(name)
        if entry is not None:
            if not entry.secret:
                return False
            await self._connection.api(f"STREAM.MSG.DELETE.KV_{self._bucket}", {"seq": entry.revision})
        # Where there is none, an earlier call may have been stopped here, by a full disk, say: then the key would count
        # as lost. If a new key exists by now, the session has begun again, and needs no marker.
        await self._put(name, b"", {**_DESTROYED_HEADERS, EXPECTED: "0"})
        return entry is not None

    async def _put(self, name: str, secret: bytes, headers: dict[str, str]) -> bool:
        answer = await self._connection.request(self._prefix + name, secret, headers=headers)
        error = msgspec.json.decode(answer.data).get("error")
        if error is None:
            return True
        if error.get("err_code") in WRONG_LAST_SEQUENCE:
            return False
        raise Unavailable(f"bucket {self._bucket} did not take a key: {error.get('description', 'refused')}")


async def watch(connection: Connection, stream: str, keyring: Keyring) -> None:
    """Tell a keyring, while the connection lives, of writes to a stream's keys, and when some may have been missed."""
    prefix = f"$KV.{keys_bucket(stream)}."

    async def on_write(msg: Msg) -> None:
        keyring.note_written(msg.subject.removeprefix(prefix), msg.data)

    await connection.subscribe(f"{prefix}>", on_write)
    connection.on_reconnect(keyring.forget_all)
