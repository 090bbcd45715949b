"""Saving a large snapshot: everything else in the process has its turn meanwhile."""

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import msgspec

from actors.runtime.context import Counters
from actors.runtime.partition.snapshot_saver import BYTES_PER_MESSAGE, SnapshotSaver
from events.errors import Conflict, Unavailable
from events.partition_fold import Checkpoint
from events.snapshot import pack, unpack
from schemas.actor import Actor
from schemas.persistent import Map, state_pieces
from tests.each import each
from tests.events.small_actors import DIARIST


class Shelf(msgspec.Struct, frozen=True):
    books: Map[int, str] = Map()


LIBRARIAN: Actor[Any] = replace(DIARIST, state_type=Shelf)  # type: ignore[arg-type]
SNAPSHOT_EVERY = 10
STANDING = Checkpoint(Shelf(Map(dict.fromkeys(range(20000), "a book" * 20))), 40, 39, 1)


class Kept:
    """Snapshots that are kept in a list."""

    def __init__(self) -> None:
        self.saved: list[tuple[str, bytes, int]] = []

    async def revision(self, key: str) -> int:
        return len(self.saved)

    async def save(self, key: str, data: bytes, upto: int, replaces: int | None = None) -> None:
        if replaces != len(self.saved):
            raise Conflict("another process has saved one since")
        self.saved.append((key, data, upto))


def context_with(kept: Kept) -> Any:
    """Return what a saver needs of a worker's context."""
    return SimpleNamespace(
        snapshots=kept, counters=Counters(), tasks=asyncio.get_running_loop(), snapshot_every=SNAPSHOT_EVERY
    )


def test_a_large_snapshot_leaves_turns_for_others() -> None:
    async def body() -> int:
        kept, turns = Kept(), 0
        saver, view = SnapshotSaver(LIBRARIAN, "01", context_with(kept)), SimpleNamespace(checkpoint=lambda: STANDING)
        saver.take(view, lambda: None)  # type: ignore[arg-type]
        while not kept.saved:
            await asyncio.sleep(0)
            turns += 1
        ((key, data, upto),) = kept.saved
        assert (key, upto) == (f"{DIARIST.name}.01", 40)
        assert unpack(LIBRARIAN, "01", data) == STANDING
        return turns

    assert asyncio.run(body()) > 50


class _TimedLoop(asyncio.SelectorEventLoop):
    """An event loop on whose clock each look at it takes a second; ``rested`` counts the seconds slept."""

    rested, seconds = 0.0, 0.0

    def time(self) -> float:
        self.seconds += 1.0
        return self.seconds

    def call_later(self, delay: float, *arguments: Any, **options: Any) -> Any:
        self.rested += delay
        return super().call_soon(*arguments, **options)


@each("waited_for", ["nothing", "renewal", "end"])
def test_a_large_snapshot_takes_a_tenth_of_the_time_unless_somebody_waits_for_it(waited_for: str) -> None:
    async def body() -> None:
        kept = Kept()
        saver, view = SnapshotSaver(LIBRARIAN, "01", context_with(kept)), SimpleNamespace(checkpoint=lambda: STANDING)
        saver.take(view, lambda: None)  # type: ignore[arg-type]
        if waited_for == "renewal":
            saver.renew(50)
        if waited_for == "end":
            await saver.close(None)
        await asyncio.gather(*asyncio.all_tasks() - {asyncio.current_task()})
        assert len(kept.saved) == 1

    loop = _TimedLoop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(body())
    pieces = sum(1 for _ in state_pieces(STANDING.state))
    assert (loop.rested >= 9 * pieces) if waited_for == "nothing" else (loop.rested == 0)


def test_a_snapshot_is_of_the_moment_it_was_taken() -> None:
    async def body() -> None:
        kept = Kept()
        saver, standing = SnapshotSaver(LIBRARIAN, "01", context_with(kept)), [STANDING]
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


def test_a_large_snapshot_is_replaced_after_more_messages_than_a_small_one() -> None:
    async def messages_until_due(standing: Checkpoint) -> int:
        kept = Kept()
        saver = SnapshotSaver(LIBRARIAN, "01", context_with(kept))
        saver.take(SimpleNamespace(checkpoint=lambda: standing), lambda: None)  # type: ignore[arg-type]
        await saver.close(None)
        count = 0
        while not saver.draining:
            count += 1
            saver.count()
            saver.drain_if_due()
        return count

    async def body() -> None:
        small = Checkpoint(Shelf(Map({1: "a book"})), 40, 39, 1)
        assert await messages_until_due(small) == SNAPSHOT_EVERY
        assert await messages_until_due(STANDING) == len(pack(LIBRARIAN, "01", STANDING)) // BYTES_PER_MESSAGE > 1_000

    asyncio.run(body())


def test_messages_count_towards_a_snapshot_although_the_state_is_lost_meanwhile() -> None:
    """The stored snapshot lacks them: if each outage began the count anew, it would never be replaced."""

    async def body() -> None:
        kept = Kept()
        saver = SnapshotSaver(LIBRARIAN, "01", context_with(kept))
        for _ in range(SNAPSHOT_EVERY):
            assert not saver.draining
            saver.begin(0)
            saver.count()
            saver.drain_if_due()
        assert saver.draining
        saver.take(SimpleNamespace(checkpoint=lambda: STANDING), lambda: None)  # type: ignore[arg-type]
        await saver.close(None)
        assert len(kept.saved) == 1

    asyncio.run(body())


def test_a_large_snapshot_that_could_not_be_saved_is_tried_again_as_soon_as_a_small_one() -> None:
    class Full(Kept):
        async def save(self, key: str, data: bytes, upto: int, replaces: int | None = None) -> None:
            raise Unavailable("the disk is full")

    async def body() -> None:
        saver = SnapshotSaver(LIBRARIAN, "01", context_with(Full()))
        saver.take(SimpleNamespace(checkpoint=lambda: STANDING), lambda: None)  # type: ignore[arg-type]
        await saver.close(None)
        assert saver.unsaved
        for _ in range(SNAPSHOT_EVERY):
            saver.count()
        saver.drain_if_due()
        assert saver.draining

    asyncio.run(body())


def test_a_slow_process_does_not_put_its_snapshot_over_its_successors() -> None:
    """The successor's may lack words that were to be forgotten meanwhile. Nothing is wrong with that."""

    async def body() -> None:
        kept = Kept()
        saver = SnapshotSaver(LIBRARIAN, "01", context_with(kept))
        saver.take(SimpleNamespace(checkpoint=lambda: STANDING), lambda: None)  # type: ignore[arg-type]
        await asyncio.sleep(0)  # it has begun to encode
        newer = ("the same", b"a newer one", 50)
        kept.saved.append(newer)
        await saver.close(None)
        assert kept.saved == [newer]
        assert not saver.unsaved

    asyncio.run(body())
