"""The keys of sessions: the store that processes share, and a process's cache of it."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from hashlib import sha256
from typing import Any, Protocol
from urllib.parse import unquote

import msgspec

from events.sealing.cipher import SessionKey, new_secret

MOST_KEPT = 20_000
"""Keys a process keeps in memory; the oldest are read again when they are needed."""

_FETCHED_AT_ONCE = 500  # keys in one request to the store
_ALL_NAMES = ""
"""Among changed names: all names may have changed."""


class KeyEntry(msgspec.Struct, frozen=True):
    """What the store holds for a session: the key's secret, or nothing where the key was destroyed.

    ``revision`` is the sequence of the entry's write to the store.
    """

    revision: int
    secret: bytes

    def __repr__(self) -> str:
        return f"KeyEntry(revision={self.revision}, {'a secret' if self.secret else 'destroyed'})"


class KeyStore(Protocol):
    """Secrets of sessions, by name. All methods raise ``events.errors.LogError`` if the store cannot be reached."""

    async def load(self, names: Collection[str]) -> Mapping[str, KeyEntry]:
        """Return the entries of these names, as far as this replica of the store has them."""

    async def confirm(self, name: str) -> KeyEntry | None:
        """Return the current entry of a name, None if there is none. Slower than ``load``, and never stale."""

    async def create(self, name: str, secret: bytes, revision: int) -> bool:
        """Store a secret, unless the name's entry is not of this revision (0: none); return whether it was stored."""

    async def destroy(self, name: str) -> bool:
        """Erase a secret, and leave a marker instead; return whether there was one."""


class NoKeys:
    """A store without keys: all sealed texts stay closed."""

    async def load(self, names: Collection[str]) -> Mapping[str, KeyEntry]:
        """Return nothing."""
        return {}

    async def confirm(self, name: str) -> KeyEntry | None:
        """Return None."""
        return None

    async def create(self, name: str, secret: bytes, revision: int) -> bool:
        """Store nothing."""
        return False

    async def destroy(self, name: str) -> bool:
        """Destroy nothing."""
        return False


def key_name(agent: str, session: str) -> str:
    """Return the name of a session's key, which shows neither agent nor session."""
    return sha256(f"{agent}\n{session}".encode()).hexdigest()


@lru_cache(maxsize=65536)
def key_name_in_headers(agent: str, session: str) -> str:
    """Return the name of a session's key, given agent and session as headers hold them, percent-encoded."""
    return key_name(unquote(agent), unquote(session))


class Keyring:
    """A process's cache of the store's keys.

    It must be told of every write to the store (``note_written``), and when writes may have been missed
    (``forget_all``): a destroyed key must not stay in the cache.
    """

    def __init__(self, store: KeyStore, most: int = MOST_KEPT) -> None:
        self.store = store
        self._most = most
        self._keys: dict[str, SessionKey] = {}
        self._announced_secrets: dict[str, bytes] = {}
        self._gone: set[tuple[str, str]] = set()
        self._open_lookups: list[set[str]] = []

    def __len__(self) -> int:
        return len(self._keys)

    def note_written(self, name: str, secret: bytes) -> None:
        """Note a write to a name's entry. It may only have been attempted: its outcome is not reported here.

        The cached entry of the name is dropped. The secret is remembered: once a message in the log names its key, the
        write has succeeded, and the secret need not be fetched.
        """
        self._keys.pop(name, None)
        self._announced_secrets.pop(name, None)
        if secret:
            _make_room(self._announced_secrets, self._most)
            self._announced_secrets[name] = secret
        for changed in self._open_lookups:
            changed.add(name)

    def forget_all(self) -> None:
        """Drop the whole cache, since writes may have been missed."""
        self._keys.clear()
        self._announced_secrets.clear()
        self._gone.clear()
        for changed in self._open_lookups:
            changed.add(_ALL_NAMES)

    def known(self, name: str, id: str) -> tuple[bool, SessionKey | None]:
        """Return whether the key ``id`` is known, and the key; None if it is known to be gone."""
        key = self._keys.get(name)
        if key is None and name in self._announced_secrets:
            key = SessionKey(self._announced_secrets.pop(name))
            if key.id == id:
                self._put(name, key)
        if key is not None and key.id == id:
            return True, key
        return (name, id) in self._gone, None

    def current(self, name: str) -> SessionKey | None:
        """Return the key to seal with, if it is cached."""
        return self._keys.get(name)

    async def fetch(self, wanted: Collection[tuple[str, str]]) -> None:
        """Fetch these keys, each given by a name and an id.

        Afterwards each is known, except those whose entries changed meanwhile.

        Raises:
            LogError: the store cannot be reached.
        """
        names = sorted({name for name, _ in wanted})
        for begin in range(0, len(names), _FETCHED_AT_ONCE):
            await self._load(names[begin : begin + _FETCHED_AT_ONCE])
        for name, id in wanted:
            if self.known(name, id)[0]:
                continue
            # A replica may lag behind: only the store's leader can say that a key is gone.
            _, is_current = await self._confirm(name)
            if is_current and not self.known(name, id)[0]:
                self._gone.add((name, id))

    async def to_seal(self, name: str, *, create: bool) -> SessionKey | None:
        """Return the key to seal a session's texts with; None if it has none, or none any more.

        Args:
            name: The key's name.
            create: Whether to make a key if there is none. True for external input, which begins a session, or begins
                it again after it was forgotten. False for events that follow from earlier words: a new key would
                make forgotten words readable again.

        Raises:
            LogError: the store cannot be reached.
        """
        key = self._keys.get(name)
        while key is None:
            entry, _ = await self._confirm(name)
            key = self._keys.get(name)
            if key is not None or (entry is not None and entry.secret):
                continue
            if not create:
                return None
            # The first writer wins; the next turn of the loop reads its secret.
            await self.store.create(name, new_secret(), entry.revision if entry is not None else 0)
        return key

    async def _load(self, names: Collection[str]) -> None:
        with self._lookup() as changed:
            entries = await self.store.load(names)
        for name, entry in entries.items():
            if changed.isdisjoint((name, _ALL_NAMES)):
                self._keep(name, entry)

    async def _confirm(self, name: str) -> tuple[KeyEntry | None, bool]:
        """Return what the store holds, and whether the entry stayed unchanged until the answer arrived."""
        with self._lookup() as changed:
            entry = await self.store.confirm(name)
        is_current = changed.isdisjoint((name, _ALL_NAMES))
        if entry is not None and is_current:
            self._keep(name, entry)
        return entry, is_current

    @contextmanager
    def _lookup(self) -> Iterator[set[str]]:
        """Yield the set of names whose entries change during the block: what was read of these may be stale."""
        changed: set[str] = set()
        self._open_lookups.append(changed)
        try:
            yield changed
        finally:
            # By identity: two empty sets are equal.
            self._open_lookups = [each for each in self._open_lookups if each is not changed]

    def _keep(self, name: str, entry: KeyEntry) -> None:
        if not entry.secret:
            self._keys.pop(name, None)
            return
        self._put(name, SessionKey(entry.secret))

    def _put(self, name: str, key: SessionKey) -> None:
        _make_room(self._keys, self._most)
        self._keys[name] = key


def _make_room(kept: dict[str, Any], most: int) -> None:
    while len(kept) >= most:
        del kept[next(iter(kept))]
