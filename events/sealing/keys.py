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

_FETCHED_AT_ONCE = 500
_EVERY = ""
"""Stands for every name among those that changed."""


class KeyEntry(msgspec.Struct, frozen=True):
    """What the store holds for a session: the key's secret, or nothing where the key was destroyed.

    ``revision`` is the entry's place among all writes to the store.
    """

    revision: int
    secret: bytes

    def __repr__(self) -> str:
        return f"KeyEntry(revision={self.revision}, {'a secret' if self.secret else 'destroyed'})"


class KeyStore(Protocol):
    """Secrets of sessions, by name. All methods raise ``events.errors.LogError`` when it cannot be reached."""

    async def load(self, names: Collection[str]) -> Mapping[str, KeyEntry]:
        """Return the entries of these names, as far as this replica of the store has them."""
        ...

    async def confirm(self, name: str) -> KeyEntry | None:
        """Return the present entry of a name, None if there is none: slower than ``load``, and never stale."""
        ...

    async def create(self, name: str, secret: bytes, revision: int) -> bool:
        """Store a secret, unless the name's entry is not of this revision (0: none); return whether it was stored."""
        ...

    async def destroy(self, name: str) -> bool:
        """Erase a secret, and leave a note that it was; return whether there was one."""
        ...


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
    """Return the name of a session's key, which shows neither."""
    return sha256(f"{agent}\n{session}".encode()).hexdigest()


@lru_cache(maxsize=65536)
def key_name_in_headers(agent: str, session: str) -> str:
    """Return the same for an agent and a session as headers spell them, percent-encoded."""
    return key_name(unquote(agent), unquote(session))


class Keyring:
    """The keys that this process has met.

    It must be told whatever is written to the store (``note_written``), or may have been while nobody listened
    (``forget_all``): no destroyed key may live on here.
    """

    def __init__(self, store: KeyStore, most: int = MOST_KEPT) -> None:
        self.store = store
        self._most = most
        self._keys: dict[str, SessionKey] = {}
        self._rumours: dict[str, bytes] = {}
        self._closed: set[tuple[str, str]] = set()
        self._under_way: list[set[str]] = []

    def __len__(self) -> int:
        return len(self._keys)

    def note_written(self, name: str, secret: bytes) -> None:
        """Note that a name's entry was written, or that a write was attempted; its outcome is not reported here.

        The cached entry of the name is dropped. The secret is remembered: once a message in the log names its key, the
        write has succeeded, and the secret need not be fetched.
        """
        self._keys.pop(name, None)
        self._rumours.pop(name, None)
        if secret:
            _make_room(self._rumours, self._most)
            self._rumours[name] = secret
        for touched in self._under_way:
            touched.add(name)

    def forget_all(self) -> None:
        """Drop the whole cache, since writes may have been missed."""
        self._keys.clear()
        self._rumours.clear()
        self._closed.clear()
        for touched in self._under_way:
            touched.add(_EVERY)

    def known(self, name: str, id: str) -> tuple[bool, SessionKey | None]:
        """Return whether it is known what opens texts sealed with the key ``id``, and that key, None for nothing."""
        key = self._keys.get(name)
        if key is None and name in self._rumours:
            key = SessionKey(self._rumours.pop(name))
            if key.id == id:
                self._put(name, key)
        if key is not None and key.id == id:
            return True, key
        return (name, id) in self._closed, None

    def current(self, name: str) -> SessionKey | None:
        """Return the key to seal with, if it is cached."""
        return self._keys.get(name)

    async def fetch(self, wanted: Collection[tuple[str, str]]) -> None:
        """Learn what opens texts sealed with these keys, each a name and an id.

        Afterwards all of it is known, but for what changed meanwhile.

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
            _, holds = await self._confirm(name)
            if holds and not self.known(name, id)[0]:
                self._closed.add((name, id))

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
            # Whoever is first wins, and the next look finds it.
            await self.store.create(name, new_secret(), entry.revision if entry is not None else 0)
        return key

    async def _load(self, names: Collection[str]) -> None:
        with self._looking() as touched:
            entries = await self.store.load(names)
        for name, entry in entries.items():
            if touched.isdisjoint((name, _EVERY)):
                self._keep(name, entry)

    async def _confirm(self, name: str) -> tuple[KeyEntry | None, bool]:
        """Return what the store holds, and whether that still held when the answer was here."""
        with self._looking() as touched:
            entry = await self.store.confirm(name)
        holds = touched.isdisjoint((name, _EVERY))
        if entry is not None and holds:
            self._keep(name, entry)
        return entry, holds

    @contextmanager
    def _looking(self) -> Iterator[set[str]]:
        """Yield the set of names whose entries change during the block; what was read of them may be stale."""
        touched: set[str] = set()
        self._under_way.append(touched)
        try:
            yield touched
        finally:
            # By identity: two empty sets are equal.
            self._under_way = [each for each in self._under_way if each is not touched]

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
