"""What a worker knows of the answers in the log: right whatever is asked in which order, and each event read once."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.runtime.answers import Answers
from events.errors import Conflict, Unavailable
from events.log import Append, Fence, Log, Stored
from tests.events.setting import Setting, record, run_simulated

OWN = "log.*.*.echo.>"
SUBJECT = "log.00.00.echo.answered"


class Counting:
    """A log that counts the messages that are read from it."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self.read = 0

    async def last(self, filter: str) -> int:
        return await self._log.last(filter)

    async def history(self, filters: Sequence[str], after: int, upto: int) -> AsyncIterator[Sequence[Stored]]:
        async for batch in self._log.history(filters, after, upto):
            self.read += len(batch)
            yield batch


def counting(log: Log) -> tuple[Counting, Log]:
    made = Counting(log)
    return made, cast(Log, made)


async def store(log: Log, *names: str) -> int:
    """Store events with ids of their own; return the last one's sequence."""
    return await log.append([Append([record(SUBJECT, **{"ce-id": name, "Nats-Msg-Id": name}) for name in names])])


async def holds(answers: Answers, name: str, since: int) -> bool:
    async with answers.of(OWN) as known:
        return await known.holds(name, since)


def test_many_who_ask_read_the_log_once() -> None:
    @run_simulated
    async def _(setting: Setting) -> None:
        await store(setting.log, *(f"a{number}" for number in range(50)))
        counted, log = counting(setting.log)
        answers = Answers(log)
        asked = [holds(answers, f"a{number}", 0) for number in range(60)]
        assert await asyncio.gather(*asked) == [True] * 50 + [False] * 10
        assert counted.read == 50
        await store(setting.log, "a50")
        assert await holds(answers, "a50", 3)
        assert counted.read == 51


def test_what_this_worker_appends_itself_is_not_read_at_all() -> None:
    @run_simulated
    async def _(setting: Setting) -> None:
        counted, log = counting(setting.log)
        answers = Answers(log)
        for number in range(5):
            async with answers.of(OWN) as known:
                assert not await known.holds(f"a{number}", 0)
                fenced = [Append([record(SUBJECT, **{"ce-id": f"a{number}"})], Fence(OWN, known.last))]
                known.note([f"a{number}"], await setting.log.append(fenced))
        assert await holds(answers, "a3", 0)
        assert counted.read == 0


def test_the_fence_tells_of_an_answer_that_came_after_the_look() -> None:
    @run_simulated
    async def _(setting: Setting) -> None:
        answers = Answers(setting.log)
        async with answers.of(OWN) as known:
            assert not await known.holds("a", 0)
            await store(setting.log, "a")
            with pytest.raises(Conflict):
                await setting.log.append([Append([record(SUBJECT)], Fence(OWN, known.last))])
            assert await known.holds("a", 0)


def test_a_request_older_than_all_that_came_before_is_looked_for_further_back_once() -> None:
    @run_simulated
    async def _(setting: Setting) -> None:
        middle = await store(setting.log, *(f"a{number}" for number in range(10)))
        await store(setting.log, "b")
        counted, log = counting(setting.log)
        answers = Answers(log)
        assert not await holds(answers, "a4", middle)
        assert counted.read == 1
        for number in range(10):
            assert await holds(answers, f"a{number}", 0)
        assert counted.read == 11


def test_ids_are_kept_in_bounds_and_what_is_dropped_is_found_again() -> None:
    @run_simulated
    async def _(setting: Setting) -> None:
        await store(setting.log, *(f"a{number}" for number in range(20)))
        answers = Answers(setting.log, most=8)
        for number in (19, 0, 7, 19):
            assert await holds(answers, f"a{number}", 0)
        async with answers.of(OWN) as known:
            assert len(known) <= 8


def test_filters_that_nobody_asks_for_give_way() -> None:
    @run_simulated
    async def _(setting: Setting) -> None:
        for agent in range(6):
            subject = f"log.0{agent}.00.echo.answered"
            names = [f"{agent}-{number}" for number in range(4)]
            await setting.log.append([Append([record(subject, **{"ce-id": name}) for name in names])])
        counted, log = counting(setting.log)
        answers = Answers(log, most=8)
        for agent in range(6):
            async with answers.of(f"log.0{agent}.*.echo.>") as known:
                assert await known.holds(f"{agent}-3", 0)
        for agent, reads in ((5, 24), (4, 24), (0, 28)):
            async with answers.of(f"log.0{agent}.*.echo.>") as known:
                assert await known.holds(f"{agent}-3", 0)
            assert counted.read == reads


def test_a_log_that_cannot_be_asked_says_so_and_is_asked_again() -> None:
    @run_simulated
    async def _(setting: Setting) -> None:
        await store(setting.log, "a")
        answers = Answers(setting.log)
        setting.kill_broker()
        with pytest.raises(Unavailable):
            await holds(answers, "a", 0)
        setting.start_broker()
        assert await holds(answers, "a", 0)


def test_a_log_that_was_put_back_is_read_anew() -> None:
    @run_simulated
    async def _(setting: Setting) -> None:
        answers = Answers(setting.log)
        async with answers.of(OWN) as known:
            assert not await known.holds("a", 0)
            known.note(["a"], 7)  # stored, and then the log came back from a copy without it
            assert not await known.holds("a", 0)
            assert known.last == 0


@settings(deadline=None, max_examples=60)
@given(
    most=st.integers(1, 6),
    steps=st.lists(st.one_of(st.just(None), st.tuples(st.integers(0, 15), st.integers(1, 15))), max_size=40),
)
def test_whatever_is_asked_the_answer_is_the_log_s(most: int, steps: list[tuple[int, int] | None]) -> None:
    @run_simulated
    async def _(setting: Setting) -> None:
        answers, stored = Answers(setting.log, most), 0
        for step in steps:
            if step is None:
                stored = await store(setting.log, f"a{stored + 1}")
            else:
                since, later = step  # an answer comes after its request
                wanted = since + later
                assert await holds(answers, f"a{wanted}", since) is (wanted <= stored)
