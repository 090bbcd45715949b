"""The keys of sealed sessions: saved into a file beside a backup, and restored from it.

What people say in a sealed session is encrypted with a key of its own; without the key nobody can read it any more.
Whoever has the backup and this file can read what people said, even what was forgotten since: see docs/forgetting.md.
"""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import msgspec

from deploy.operating.operator_session import FACTS_SESSION
from events.errors import LedgerDamaged, Misconfigured, Unavailable
from events.files.private_files import open_private
from events.jetstream import Connection, JetStreamLog
from events.jetstream.session_keys import KeyValueKeys
from events.ledger import LedgerReader
from events.ledger.rows import topic_of_subject
from events.sealing.cipher import SessionKey
from events.sealing.keys import key_name_in_headers
from events.sealing.sealed_texts import KEY_DESTROYED, SEALED_HEADER
from schemas.event import topic_of
from schemas.vocabulary.operator import ForgetOrdered

_FORGET_ORDERED = topic_of(ForgetOrdered)
_KEYS_PER_REQUEST = 500
"""How many keys are loaded from the broker at a time."""


class SessionKeys(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The secret keys of sessions, by their names."""

    keys: dict[str, bytes]

    def __repr__(self) -> str:
        return f"SessionKeys({len(self.keys)})"


NO_KEYS = SessionKeys({})


class CollectedKeys(NamedTuple):
    """The keys of a ledger's sessions, and how many sessions lack one although it was never destroyed.

    A session that spoke again after its key was lost has a new key, which does not open its earlier words.
    """

    keys: SessionKeys
    missing: int


async def collect_keys(log: JetStreamLog, ledger: Path) -> CollectedKeys:
    """Return the keys of all sessions in a ledger, except those that were destroyed.

    Raises:
        LogError: the ledger or the broker cannot be read.
    """
    if log.sealing is None:
        return CollectedKeys(NO_KEYS, 0)
    used: dict[str, set[str]] = {}  # name -> the ids of the keys that its words are sealed with
    forgotten: dict[str, set[str]] = {}  # name -> the ids of the keys of words before an order to forget
    with LedgerReader(ledger) as reader:
        for batch in reader.history():
            for stored in batch:
                name = key_name_in_headers(stored.headers.get("ce-agent", ""), stored.headers.get("ce-session", ""))
                if (id := stored.headers.get(SEALED_HEADER, KEY_DESTROYED)) != KEY_DESTROYED:
                    used.setdefault(name, set()).add(id)
                if (
                    topic_of_subject(stored.subject) == _FORGET_ORDERED
                    and stored.headers.get("ce-session") != FACTS_SESSION
                ):
                    forgotten.setdefault(name, set()).update(used.get(name, ()))
    store, missing = log.sealing.keyring.store, 0
    found: dict[str, bytes] = {}
    for batch_of_names in _batches(sorted(used)):
        entries = dict(await store.load(batch_of_names))
        for name in batch_of_names:
            # A replica may lag behind: only the leader can say that there is none.
            if name not in entries and (entry := await store.confirm(name)) is not None:
                entries[name] = entry
        found |= {name: entry.secret for name, entry in entries.items() if entry.secret}
        missing += sum(
            name not in entries
            or (
                bool(secret := entries[name].secret)
                and not used[name] <= {SessionKey(secret).id, *forgotten.get(name, ())}
            )
            for name in batch_of_names
        )
    return CollectedKeys(SessionKeys(dict(sorted(found.items()))), missing)


def _batches(names: list[str]) -> Iterator[list[str]]:
    rest = iter(names)
    while batch := list(islice(rest, _KEYS_PER_REQUEST)):
        yield batch


def write_keys(file: Path, keys: SessionKeys) -> None:
    """Write keys to a file that its owner alone can read; raises Unavailable."""
    try:
        with open_private(file) as out:
            out.write(msgspec.json.encode(keys))
    except OSError as wrong:
        raise Unavailable(f"{file} cannot be written: {wrong.strerror or wrong}") from wrong


def read_keys(file: Path) -> SessionKeys:
    """Read the keys that :func:`write_keys` wrote; raises Misconfigured or LedgerDamaged."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=SessionKeys)
    except OSError as wrong:
        raise Misconfigured(f"{file} cannot be read: {wrong.strerror or wrong}") from wrong
    except msgspec.DecodeError as wrong:  # whose message may hold a part of a key, so it is not shown
        raise LedgerDamaged(
            f"{file} does not hold session keys as `neuraxis backup --keys` of this release writes them"
        ) from wrong


async def restore_keys(connection: Connection, stream: str, keys: SessionKeys, replicas: int) -> int:
    """Store the keys whose names the stream does not have yet; return how many were stored.

    Raises:
        LogError: the broker refuses, or cannot be reached.
    """
    if not keys.keys:
        return 0
    store = await KeyValueKeys.over(connection, stream, replicas)
    return sum([await store.create(name, secret, revision=0) for name, secret in keys.keys.items()])
