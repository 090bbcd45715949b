"""Saving a large snapshot: everything else in the process has its turn meanwhile."""

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import msgspec

from actors.runtime.context import Counters
from actors.runtime.partition.snapshot_saver import SnapshotSaver
from events.partition_fold import Checkpoint
from events.snapshot import unpack
from schemas.actor import Actor
from schemas.persistent import Map
from tests.events.small_actors import DIARIST


class Shelf(msgspec.Struct, frozen=True):
    books: Map[int, str] = Map()


LIBRARIAN: Actor[Any] = replace(DIARIST, state_type=Shelf)  # type: ignore[arg-type]
STANDING = Checkpoint(Shelf(Map(dict.fromkeys(range(20000), "a book" * 20))), 40, 39, 1)


class Kept:
    """Snapshots that are kept in a list."""

    def __init__(self) -> None:
        self.saved: list[tuple[str, bytes, int]] = []

    async def save(self, key: str, data: bytes, upto: int) -> None:
        self.saved.append((key, data, upto))


def test_a_large_snapshot_leaves_turns_for_others() -> None:
    async def body() -> int:
        kept, turns = Kept(), 0
        context: Any = SimpleNamespace(snapshots=kept, counters=Counters(), tasks=asyncio.get_running_loop())
        saver, view = SnapshotSaver(LIBRARIAN, "01", context), SimpleNamespace(checkpoint=lambda: STANDING)
        saver.take(view, lambda: None)  # type: ignore[arg-type]
        while not kept.saved:
            await asyncio.sleep(0)
            turns += 1
        ((key, data, upto),) = kept.saved
        assert (key, upto) == (f"{DIARIST.name}.01", 40)
        assert unpack(LIBRARIAN, "01", data) == STANDING
        return turns

    assert asyncio.run(body()) > 50


def test_a_snapshot_is_of_the_moment_it_was_taken() -> None:
    async def body() -> None:
        kept = Kept()
        context: Any = SimpleNamespace(snapshots=kept, counters=Counters(), tasks=asyncio.get_running_loop())
        saver, standing = SnapshotSaver(LIBRARIAN, "01", context), [STANDING]
        saver.begin(7)
        saver.take(SimpleNamespace(checkpoint=lambda: standing[0]), lambda: None)  # type: ignore[arg-type]
        standing[0] = Checkpoint(Shelf(), 50, 49, 2)
        saver.begin(8)
        await saver.close(None)
        ((_, data, upto),) = kept.saved
        assert upto == 40
        assert unpack(LIBRARIAN, "01", data) == STANDING
        assert msgspec.msgpack.decode(data[32:])["losses"] == 7

    asyncio.run(body())
