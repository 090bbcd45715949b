"""What a worker knows of the answers in the log: right whatever is asked in which order, and each event read once."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from typing import cast

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.runtime.effectors.answered_ids import Answer, Answers
from events.errors import Conflict, Refused, Unavailable
from events.log import MAX_RECORD_BYTES, Append, Log, LogInfo, Record, Stored
from tests.events.setting import Setting, collect, record, run_simulated

OWN = "log.*.*.echo.>"
SUBJECT = "log.00.00.echo.answered"


class Counting:
    """A log that counts what is read from it and how often is appended, and may have been emptied."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self.read = 0
        self.appends = 0
        self.emptied = False
        self.open = asyncio.Event()
        self.open.set()

    async def append(self, appends: Sequence[Append]) -> int:
        await self.open.wait()
        self.appends += 1
        return await self._log.append(appends)

    async def last(self, filter: str) -> int:
        return 0 if self.emptied else await self._log.last(filter)

    async def info(self) -> LogInfo:
        info = await self._log.info()
        return msgspec.structs.replace(info, last_seq=0) if self.emptied else info

    async def history(self, filters: Sequence[str], after: int, upto: int) -> AsyncIterator[Sequence[Stored]]:
        async for batch in self._log.history(filters, after, upto):
            self.read += len(batch)
            yield batch


def counting(log: Log, most: int = 1000) -> tuple[Counting, Answers]:
    made = Counting(log)
    return made, Answers(cast(Log, made), cast(Log, made), most)


def answer(name: str, since: int = 0, data: bytes = b"{}", subject: str = SUBJECT) -> Answer:
    return Answer(name, since, [own(name, data, subject)])


def own(name: str, data: bytes = b"{}", subject: str = SUBJECT) -> Record:
    return record(subject, data, **{"ce-id": name, "Nats-Msg-Id": name})


async def store(log: Log, *names: str) -> int:
    """Store events with ids of their own; return the last one's sequence."""
    return await log.append([Append([own(name) for name in names])])


async def names(log: Log) -> list[str]:
    return [stored.headers["ce-id"] for stored in await collect(log, filters=(OWN,))]


def test_many_who_ask_read_the_log_once() -> None:
    @run_simulated
    async def _(setting: Setting) -> None:
        await store(setting.log, *(f"a{number}" for number in range(50)))
        log, answers = counting(setting.log)
        asked = [answers.holds(OWN, f"a{number}", 0) for number in range(60)]
        assert await asyncio.gather(*asked) == [True] * 50 + [False] * 10
        assert log.read == 50
        await store(setting.log, "a50")
        assert await answers.holds(OWN, "a50", 3)
        assert log.read == 51


def test_what_this_worker_stores_itself_is_not_read_at_all() -> None:
    @run_simulated
    async def _(setting: Setting) -> None:
        log, answers = counting(setting.log)
        for number in range(5):
            assert await answers.store(OWN, answer(f"a{number}"))
        assert await answers.holds(OWN, "a3", 0)
        assert not await answers.store(OWN, answer("a3"))
        assert log.read == 0
        assert await names(setting.log) == [f"a{number}" for number in range(5)]


def test_answers_that_are_ready_together_are_stored_together_in_their_order() -> None:
    @run_simulated
    async def _(setting: Setting) -> None:
        log, answers = counting(setting.log)
        ready: list[str] = []

        async def store_now(name: str) -> bool:
            ready.append(name)
            return await answers.store(OWN, answer(name))

        assert await asyncio.gather(*(store_now(f"a{number}") for number in range(40))) == [True] * 40
        assert await names(setting.log) == ready
        assert log.appends <= 2


def test_an_answer_that_another_worker_has_stored_meanwhile_is_not_stored_again() -> None:
    @run_simulated
    async def _(setting: Setting) -> None:
        workers = [counting(setting.log)[1] for _ in range(3)]

        async def insist(answers: Answers, name: str) -> bool:
            one = answer(name)
            while one.pending:
                try:
                    await answers.store(OWN, one)
                except Conflict:
                    continue
            return bool(one.stored)

        wanted = [f"a{number}" for number in range(20)]
        stored = await asyncio.gather(*(insist(answers, name) for name in wanted for answers in workers))
        assert sum(stored) == 20
        assert Counter(await names(setting.log)) == dict.fromkeys(wanted, 1)


def test_an_answer_that_the_broker_refuses_keeps_no_other_from_the_log() -> None:
    @run_simulated
    async def _(setting: Setting) -> None:
        answers = Answers(setting.log, setting.log)
        large = answer("large", data=b"x" * (MAX_RECORD_BYTES + 100_000))
        found = await asyncio.gather(
            *(answers.store(OWN, one) for one in (answer("a"), large, answer("b"))), return_exceptions=True
        )
        assert [found[0], found[2]] == [True, True]
        assert isinstance(found[1], Refused)
        assert sorted(await names(setting.log)) == ["a", "b"]


def test_an_answer_keeps_its_place_while_the_log_cannot_be_reached() -> None:
    @run_simulated
    async def _(setting: Setting) -> None:
        answers = Answers(setting.log, setting.log)
        first, second = answer("first"), answer("second")
        setting.kill_broker()
        with pytest.raises(Unavailable):
            await answers.store(OWN, first)
        setting.start_broker()
        assert await answers.store(OWN, second)
        assert first.stored
        assert await answers.store(OWN, first)
        assert await names(setting.log) == ["first", "second"]


def test_what_is_cancelled_before_it_is_stored_is_not_stored() -> None:
    @run_simulated
    async def _(setting: Setting) -> None:
        log, answers = counting(setting.log)
        log.open.clear()
        storing = []
        for name in ("a", "b", "c"):
            storing.append(asyncio.create_task(answers.store(OWN, answer(name))))
            await asyncio.sleep(1)  # of virtual time
        storing[1].cancel()
        await asyncio.wait(storing[1:2])
        log.open.set()
        await asyncio.wait(storing)
        assert await names(setting.log) == ["a", "c"]


def test_a_request_older_than_all_that_came_before_is_looked_for_further_back_once() -> None:
    @run_simulated
    async def _(setting: Setting) -> None:
        middle = await store(setting.log, *(f"a{number}" for number in range(10)))
        await store(setting.log, "b")
        log, answers = counting(setting.log)
        assert not await answers.holds(OWN, "a4", middle)
        assert log.read == 1
        for number in range(10):
            assert await answers.holds(OWN, f"a{number}", 0)
        assert log.read == 11


def test_ids_are_kept_in_bounds_and_what_is_dropped_is_found_again() -> None:
    @run_simulated
    async def _(setting: Setting) -> None:
        await store(setting.log, *(f"a{number}" for number in range(20)))
        _, answers = counting(setting.log, most=8)
        for number in (19, 0, 7, 19):
            assert await answers.holds(OWN, f"a{number}", 0)
            assert len(answers) <= 8


def test_filters_that_nobody_asks_for_give_way() -> None:
    @run_simulated
    async def _(setting: Setting) -> None:
        for agent in range(6):
            records = [own(f"{agent}-{number}", subject=f"log.0{agent}.00.echo.answered") for number in range(4)]
            await setting.log.append([Append(records)])
        log, answers = counting(setting.log, most=8)
        for agent in range(6):
            assert await answers.holds(f"log.0{agent}.*.echo.>", f"{agent}-3", 0)
        for agent, reads in ((5, 24), (4, 24), (0, 28)):
            assert await answers.holds(f"log.0{agent}.*.echo.>", f"{agent}-3", 0)
            assert log.read == reads


def test_a_log_that_cannot_be_asked_says_so_and_is_asked_again() -> None:
    @run_simulated
    async def _(setting: Setting) -> None:
        await store(setting.log, "a")
        answers = Answers(setting.log, setting.log)
        setting.kill_broker()
        with pytest.raises(Unavailable):
            await answers.holds(OWN, "a", 0)
        setting.start_broker()
        assert await answers.holds(OWN, "a", 0)


def test_a_log_that_was_put_back_is_read_anew() -> None:
    @run_simulated
    async def _(setting: Setting) -> None:
        log, answers = counting(setting.log)
        await answers.store(OWN, answer("a"))
        log.emptied = True
        assert not await answers.holds(OWN, "a", 0)


@settings(deadline=None, max_examples=60)
@given(
    most=st.integers(1, 6),
    steps=st.lists(st.one_of(st.just(None), st.tuples(st.integers(0, 15), st.integers(1, 15))), max_size=40),
)
def test_whatever_is_asked_the_answer_is_the_log_s(most: int, steps: list[tuple[int, int] | None]) -> None:
    @run_simulated
    async def _(setting: Setting) -> None:
        answers, stored = Answers(setting.log, setting.log, most), 0
        for step in steps:
            if step is None:
                stored = await store(setting.log, f"a{stored + 1}")
            else:
                since, later = step  # an answer comes after its request
                wanted = since + later
                assert await answers.holds(OWN, f"a{wanted}", since) is (wanted <= stored)
