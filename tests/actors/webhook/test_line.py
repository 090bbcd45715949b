"""The way to a receiver: whose turn it is, and who has to give way."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.webhook import queue as line_module
from actors.webhook.queue import Capacity, Overrun
from tests.actors.runtime.waiting import DEADLINE_S
from tests.simulation.loop import run_virtual


@pytest.fixture(autouse=True, scope="module")
def down_at_once() -> Iterator[None]:
    """Who fails once is down."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(line_module, "DOWN_S", 0.0)
        yield


class Way:
    """A line, those who have joined it, and who got the turn in which order."""

    def __init__(self, places: int, room: Capacity | None = None) -> None:
        self.line = (room or Capacity(places)).line()
        self.order: list[int] = []
        self.refused: list[int] = []
        self.joined: dict[int, asyncio.Task[None]] = {}

    async def _join(self, age: int) -> None:
        try:
            await self.line.admit((age, 0))
        except Overrun:
            self.refused.append(age)
        else:
            self.order.append(age)

    async def join(self, *ages: int) -> None:
        """Have alerts of some ages join, one after another."""
        for age in ages:
            self.joined[age] = asyncio.create_task(self._join(age))
            await settled()


async def settled() -> None:
    """Let everything that can go on go on."""
    for _ in range(5):
        await asyncio.sleep(0)


@contextlib.asynccontextmanager
async def way(places: int = 100, room: Capacity | None = None) -> AsyncIterator[Way]:
    async with asyncio.timeout(DEADLINE_S):
        made = Way(places, room)
        try:
            yield made
        finally:
            for task in made.joined.values():
                task.cancel()
            await asyncio.gather(*made.joined.values(), return_exceptions=True)


def test_the_oldest_goes_next_whoever_came_first() -> None:
    async def main() -> None:
        async with way() as one:
            await one.join(5, 9, 7, 8, 6)
            for _ in range(5):
                one.line.leave()
                await settled()
            assert one.order == [5, 6, 7, 8, 9]

    asyncio.run(main())


def test_a_line_that_is_held_gives_its_first_turn_to_the_oldest_that_came_meanwhile() -> None:
    async def main() -> None:
        async with way() as one:
            one.line.hold(0.05)
            await one.join(3, 1, 2)
            assert one.order == []
            await one.joined[1]
            assert one.order == [1]

    run_virtual(main())


def test_a_line_is_held_no_longer_than_was_said_last() -> None:
    async def main() -> None:
        async with way() as one:
            one.line.hold(1800.0)
            await one.join(2, 1)
            one.line.hold(0.01)
            await one.joined[1]
            one.line.hold(0.01)
            assert one.order == [1], "the turn is somebody's"
            one.line.leave()
            await one.joined[2]

    asyncio.run(main())


def test_a_line_is_not_held_where_nothing_is_on_its_way() -> None:
    async def main() -> None:
        async with way() as one:
            one.line.hold(0.0)
            await one.join(1)
            assert one.order == [1]

    asyncio.run(main())


def test_a_turn_that_comes_to_who_has_just_gone_is_the_next_one_s() -> None:
    async def main() -> None:
        async with way() as one:
            await one.join(1, 2, 3)
            one.line.leave()
            one.joined[2].cancel()
            await settled()
            assert one.order == [1, 3]

    asyncio.run(main())


def test_as_many_as_there_are_places_wait_for_a_receiver_that_is_down() -> None:
    async def main() -> None:
        async with way(places=2) as one:
            await one.join(1, 4, 2, 3, 5)
            assert one.refused == [], "it may be well"
            one.line.failed()
            await settled()
            assert one.refused == [2, 3]
            await one.join(6)
            assert one.refused == [2, 3, 4]
            one.line.answered()
            await one.join(7)
            assert one.refused == [2, 3, 4]

    asyncio.run(main())


def test_a_call_that_fails_once_makes_nobody_give_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_module, "DOWN_S", 1800.0)

    async def main() -> None:
        async with way(places=2) as one:
            await one.join(1, 2, 3, 4)
            one.line.failed()
            await one.join(5)
            assert one.refused == []

    asyncio.run(main())


def test_where_room_is_short_only_a_line_that_lags_and_has_more_than_its_share_gives_way() -> None:
    async def main() -> None:
        room = Capacity(4)
        async with way(room=room) as well, way(room=room) as down:
            down.line.failed()
            await down.join(0, 1, 2, 3, 4)
            assert down.refused == [], "there is room, whoever's share it is"
            await well.join(0, 1, 2)
            assert down.refused == [1, 2]
            await well.join(3, 4)
            assert down.refused == [1, 2], "it has its share"
            assert well.refused == []

    asyncio.run(main())


def test_a_receiver_too_slow_for_those_who_wait_is_as_one_that_is_down(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with way(places=2) as one:
            await one.join(1, 2, 3, 4, 5)
            one.line.leave()
            await settled()
            assert one.refused == [], "nobody has waited for long"
            monkeypatch.setattr(line_module, "PATIENCE_S", 0.0)
            one.line.leave()
            await settled()
            assert (one.order, one.refused) == ([1, 2, 3], [])
            await one.join(6)
            assert one.refused == [4]

    asyncio.run(main())


def test_who_gave_way_or_went_away_takes_no_place() -> None:
    async def main() -> None:
        async with way(places=2) as one:
            await one.join(1, 2, 3)
            one.joined[2].cancel()
            await settled()
            one.line.failed()
            await one.join(4)
            assert one.refused == []
            await one.join(5)
            assert one.refused == [3]

    asyncio.run(main())


def test_what_begins_before_an_end_that_was_told_is_over() -> None:
    line = Capacity(1).line()
    assert not line.is_over("a", (5, 0))
    line.took_end("a", (5, 0))
    assert line.is_over("a", (4, 9))
    assert not line.is_over("a", (6, 0)), "it has begun anew"
    assert not line.is_over("b", (4, 9))


def test_ends_that_were_told_are_kept_in_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_module, "MOST_ENDED", 2)
    line = Capacity(1).line()
    for place, name in enumerate(("a", "b", "a", "c")):
        line.took_end(name, (place, 0))
    assert [name for name in "abc" if line.is_over(name, (0, 0))] == ["a", "c"]


@settings(deadline=None)
@given(
    places=st.integers(1, 3),
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("join"), st.integers(0, 30)),
            st.tuples(st.sampled_from(("leave", "down", "up")), st.just(0)),
            st.tuples(st.just("cancel"), st.integers(0, 30)),
        ),
        max_size=40,
    ),
)
def test_somebody_has_the_turn_whenever_anybody_waits_and_nobody_else_has(
    places: int, steps: list[tuple[str, int]]
) -> None:
    async def main() -> None:
        async with way(places) as one:
            left, down = 0, False
            for step, age in steps:
                waiting = [each for each, task in one.joined.items() if not task.done()]
                match step:
                    case "join" if age not in one.joined:
                        await one.join(age)
                    case "leave" if len(one.order) > left:
                        left += 1
                        one.line.leave()
                    case "cancel" if age in waiting:
                        one.joined[age].cancel()
                    case "down":
                        down = True
                        one.line.failed()
                    case "up":
                        down = False
                        one.line.answered()
                await settled()
                still = [each for each, task in one.joined.items() if not task.done()]
                assert len(one.order) - left <= 1
                assert not still or len(one.order) - left == 1
                assert not down or len(still) <= places
                if step == "leave" and waiting and len(one.order) > left:
                    assert one.order[-1] == min(waiting)

    asyncio.run(main())
