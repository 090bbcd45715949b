"""What a process keeps of the keys, and when it must not believe what it has."""

import asyncio
from collections.abc import Collection, Mapping

import pytest

from events.errors import Unavailable
from events.sealing.cipher import SessionKey
from events.sealing.keys import KeyEntry, Keyring, key_name, key_name_in_headers

SECRET, FRESH = b"1" * 32, b"2" * 32
ID, FRESH_ID = SessionKey(SECRET).id, SessionKey(FRESH).id


class Shelf:
    """A store in memory; ``behind`` is what a replica that lags shows, ``meanwhile`` happens during the next look."""

    def __init__(self) -> None:
        self.entries: dict[str, KeyEntry] = {}
        self.behind: dict[str, KeyEntry] | None = None
        self.looks = 0
        self.reachable = True
        self.meanwhile = lambda: None

    async def load(self, names: Collection[str]) -> Mapping[str, KeyEntry]:
        await self._look()
        shown = self.entries if self.behind is None else self.behind
        return {name: shown[name] for name in names if name in shown}

    async def confirm(self, name: str) -> KeyEntry | None:
        found = self.entries.get(name)
        await self._look()
        return found

    async def create(self, name: str, secret: bytes, revision: int) -> bool:
        there = self.entries.get(name)
        if (there.revision if there else 0) != revision:
            return False
        self.entries[name] = KeyEntry(revision + 1, secret)
        return True

    async def destroy(self, name: str) -> bool:
        there = self.entries[name]
        self.entries[name] = KeyEntry(there.revision + 1, b"")
        return bool(there.secret)

    async def _look(self) -> None:
        self.looks += 1
        meanwhile, self.meanwhile = self.meanwhile, lambda: None
        meanwhile()
        if not self.reachable:
            raise Unavailable("out of reach")


def holding(secret: bytes = SECRET) -> Shelf:
    shelf = Shelf()
    shelf.entries["n"] = KeyEntry(1, secret)
    return shelf


def test_a_key_is_fetched_once() -> None:
    async def body() -> None:
        shelf = holding()
        keyring = Keyring(shelf)
        assert keyring.known("n", ID) == (False, None)
        await keyring.fetch([("n", ID)])
        known, key = keyring.known("n", ID)
        assert known
        assert key is not None
        assert key.id == ID
        assert await keyring.to_seal("n", create=False) is key
        assert shelf.looks == 1

    asyncio.run(body())


def test_a_replica_that_lags_behind_does_not_make_a_key_gone() -> None:
    async def body() -> None:
        shelf = holding()
        shelf.behind = {}
        keyring = Keyring(shelf)
        await keyring.fetch([("n", ID)])
        assert keyring.known("n", ID)[1] is not None

    asyncio.run(body())


def test_texts_of_a_destroyed_key_are_closed_and_asked_about_once() -> None:
    async def body() -> None:
        shelf = holding(b"")
        keyring = Keyring(shelf)
        await keyring.fetch([("n", ID)])
        assert keyring.known("n", ID) == (True, None)
        assert shelf.looks == 2

    asyncio.run(body())


def test_a_destroyed_key_does_not_live_on_in_a_process_that_hears_of_it() -> None:
    async def body() -> None:
        shelf = holding()
        keyring = Keyring(shelf)
        await keyring.fetch([("n", ID)])
        await shelf.destroy("n")
        keyring.note_written("n", b"")
        assert keyring.known("n", ID) == (False, None)
        assert await keyring.to_seal("n", create=False) is None

    asyncio.run(body())


def test_a_key_destroyed_while_it_is_fetched_is_not_kept() -> None:
    async def body() -> None:
        shelf = holding()
        keyring = Keyring(shelf)

        def destroyed() -> None:
            shelf.entries["n"] = KeyEntry(2, b"")
            keyring.note_written("n", b"")

        shelf.meanwhile = destroyed
        assert await keyring.to_seal("n", create=False) is None
        assert len(keyring) == 0

    asyncio.run(body())


def test_what_was_missed_is_asked_again() -> None:
    async def body() -> None:
        shelf = holding()
        keyring = Keyring(shelf)
        await keyring.fetch([("n", ID), ("gone", ID)])
        keyring.forget_all()
        assert keyring.known("n", ID) == keyring.known("gone", ID) == (False, None)

    asyncio.run(body())


def test_a_secret_heard_opens_what_names_its_key_without_being_fetched() -> None:
    keyring = Keyring(Shelf())
    keyring.note_written("n", SECRET)
    assert keyring.current("n") is None  # whether it was stored is not known yet
    known, key = keyring.known("n", ID)
    assert known
    assert key is not None
    assert keyring.current("n") is key


def test_a_secret_that_was_heard_but_turned_away_opens_nothing() -> None:
    keyring = Keyring(Shelf())
    keyring.note_written("n", FRESH)
    assert keyring.known("n", ID) == (False, None)
    assert keyring.current("n") is None


def test_only_what_comes_from_outside_begins_a_session() -> None:
    async def body() -> None:
        shelf = Shelf()
        keyring = Keyring(shelf)
        assert await keyring.to_seal("n", create=False) is None
        assert shelf.entries == {}
        key = await keyring.to_seal("n", create=True)
        assert key is not None
        assert await keyring.to_seal("n", create=False) is key

    asyncio.run(body())


def test_a_forgotten_session_that_begins_anew_gets_a_key_that_opens_nothing_of_before() -> None:
    async def body() -> None:
        shelf = holding(b"")
        keyring = Keyring(shelf)
        key = await keyring.to_seal("n", create=True)
        assert key is not None
        assert key.id != ID
        await keyring.fetch([("n", ID)])
        assert keyring.known("n", ID) == (True, None)
        assert keyring.current("n") is not None
        assert keyring.known("n", key.id)[1] is keyring.current("n")

    asyncio.run(body())


def test_of_two_that_make_a_key_at_once_both_use_the_first() -> None:
    async def body() -> None:
        shelf = Shelf()
        one, other = Keyring(shelf), Keyring(shelf)
        first, second = await asyncio.gather(one.to_seal("n", create=True), other.to_seal("n", create=True))
        assert first is not None
        assert second is not None
        assert first.id == second.id

    asyncio.run(body())


def test_a_store_out_of_reach_is_an_error_and_makes_nothing_gone() -> None:
    async def body() -> None:
        shelf = holding()
        shelf.reachable = False
        keyring = Keyring(shelf)
        with pytest.raises(Unavailable):
            await keyring.fetch([("n", ID)])
        assert keyring.known("n", ID) == (False, None)

    asyncio.run(body())


def test_no_more_keys_are_kept_than_there_is_room_for() -> None:
    async def body() -> None:
        shelf = Shelf()
        shelf.entries = {str(number): KeyEntry(1, bytes([number]) * 32) for number in range(1, 10)}
        keyring = Keyring(shelf, most=3)
        for number in range(1, 10):
            await keyring.fetch([(str(number), SessionKey(bytes([number]) * 32).id)])
        assert len(keyring) == 3

    asyncio.run(body())


def test_a_key_s_name_shows_neither_agent_nor_session_and_tells_all_apart() -> None:
    names = {
        key_name("ann", "travel"),
        key_name("ann", "travels"),
        key_name("anntravel", ""),
        key_name("travel", "ann"),
    }
    assert len(names) == 4
    assert not any("ann" in name or "travel" in name for name in names)
    assert key_name_in_headers("a%20b", "100%25") == key_name("a b", "100%")
