"""Partitions take turns: one with a backlog of dear messages does not hold up the others."""

import asyncio
import contextlib
import dataclasses
from collections.abc import Iterable, Sequence
from functools import partial

import pytest

from actors.gateway import new_input
from actors.reflex import ACTOR as REFLEX
from actors.runtime.clock import SystemClock
from actors.runtime.fair_scheduler import BACKGROUND_NS, BACKGROUND_WAIT_NS, MOST_WAITING, SLICE_NS, FairScheduler
from events.jetstream import JetStreamLog
from events.log import Append, Stored, Tail
from schemas.actor import Emission, Message
from schemas.event import Event, topic_of
from schemas.vocabulary.gateway import InputReceived
from tests.actors.runtime.living import PARTITIONS, living
from tests.actors.runtime.waiting import DEADLINE_S, until
from tests.broker import Broker
from tests.each import each


class Partition:
    """Decides one message a turn, and gets in line again while more wait."""

    def __init__(self, name: str, backlog: int, turns: FairScheduler, told: list[str]) -> None:
        self.backlog = backlog
        self._name, self._turns, self._told = name, turns, told

    def turn(self) -> None:
        self.backlog -= 1
        self._told.append(self._name)
        if self.backlog:
            self._turns.add(self)


def test_partitions_that_wait_take_turns() -> None:
    async def body() -> list[str]:
        turns, told = FairScheduler(SystemClock()), list[str]()
        for name, backlog in (("a", 4), ("b", 2), ("c", 1)):
            turns.add(Partition(name, backlog, turns, told))
        running = asyncio.create_task(turns.run())
        await until(lambda: len(told) == 7, "all turns")
        running.cancel()
        return told

    assert asyncio.run(body()) == ["a", "b", "c", "a", "b", "a", "a"]


def test_no_turn_is_given_while_messages_are_handed_out_and_none_is_read_beyond_the_room() -> None:
    async def body() -> None:
        turns, told = FairScheduler(SystemClock()), list[str]()
        turns.add(Partition("a", MOST_WAITING + 3, turns, told))
        running = asyncio.create_task(turns.run())
        with turns.paused():
            for _ in range(20):
                await asyncio.sleep(0)
            assert len(told) <= 1  # one may have been on its way
        async with asyncio.timeout(DEADLINE_S):
            await turns.wait_capacity()
        assert 3 <= len(told) < 20
        running.cancel()

    asyncio.run(body())


def test_work_in_the_background_is_done_in_order_once_no_partition_waits_for_its_turn() -> None:
    async def body() -> list[str]:
        turns, told = FairScheduler(SystemClock()), list[str]()
        turns.add_background(lambda: told.append("first"))
        turns.add_background(lambda: told.append("second"))
        turns.add(Partition("a", 2, turns, told))
        running = asyncio.create_task(turns.run())
        await until(lambda: len(told) == 4, "all turns, and what waits behind them")
        running.cancel()
        return told

    assert asyncio.run(body()) == ["a", "a", "first", "second"]


def test_the_background_waits_while_messages_come_unless_it_is_full() -> None:
    async def body() -> None:
        turns, done = FairScheduler(SystemClock()), list[int]()
        running = asyncio.create_task(turns.run())
        with turns.busy():
            for number in range(MOST_WAITING):
                turns.add_background(partial(done.append, number))
            for _ in range(20):
                await asyncio.sleep(0)
            assert done == []
            for number in range(MOST_WAITING, MOST_WAITING + 3):
                turns.add_background(partial(done.append, number))
            async with asyncio.timeout(DEADLINE_S):
                await turns.wait_capacity()
            assert len(done) >= 3
        await until(lambda: len(done) == MOST_WAITING + 3, "the rest")
        assert done == list(range(MOST_WAITING + 3))
        running.cancel()

    asyncio.run(body())


@each("busy", [True, False])
def test_the_background_has_its_turn_in_time_where_the_process_is_never_idle(busy: bool) -> None:
    async def body() -> None:
        clock = Counted()
        turns, told = FairScheduler(clock), list[str]()

        class Endless(Partition):
            def turn(self) -> None:
                clock.passed_ns += 4 * SLICE_NS
                told.append("urgent")
                turns.add(self)

        def work() -> None:
            clock.passed_ns += BACKGROUND_NS
            told.append("background")

        for _ in range(30):
            turns.add_background(work)
        turns.add(Endless("a", 1, turns, told))
        running = asyncio.create_task(turns.run())
        with turns.busy() if busy else contextlib.nullcontext():
            for _ in range(200):
                await asyncio.sleep(0)
        running.cancel()
        waited = told.index("background") * 4 * SLICE_NS
        assert BACKGROUND_WAIT_NS <= waited <= BACKGROUND_WAIT_NS + 4 * SLICE_NS
        first = told[told.index("background") :]
        a_slice = SLICE_NS // BACKGROUND_NS
        assert first[: 2 * a_slice + 2] == [*["background"] * a_slice, "urgent"] * 2, "they take turns"
        assert told.count("background") == 30

    asyncio.run(body())


class Counted(SystemClock):
    """A clock whose measured time passes with decisions only."""

    passed_ns = 0

    def elapsed_ns(self) -> int:
        return self.passed_ns


class InOnePiece:
    """A reading that hands inputs on once it has them all, together: how they arrive is the broker's affair."""

    cut_off_s = 0.0

    def __init__(self, tail: Tail, inputs: int) -> None:
        self._tail = tail
        self._missing = inputs

    async def next(self) -> Sequence[Stored]:
        found = list(await self._tail.next())
        read = self._inputs(found)
        while 0 < read < self._missing:
            found += await self._tail.next()
            read = self._inputs(found)
        self._missing -= read
        return found

    async def close(self) -> None:
        await self._tail.close()

    @staticmethod
    def _inputs(messages: Sequence[Stored]) -> int:
        return sum(stored.headers["ce-type"] == topic_of(InputReceived) for stored in messages)


def test_an_input_of_another_session_is_decided_before_a_backlog_of_dear_ones(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, decided = Counted(), list[str]()

    def decide(state: object, message: Message) -> Iterable[Event | Emission]:
        if isinstance(message.event, InputReceived):
            decided.append(message.session)
            clock.passed_ns += 4 * SLICE_NS if message.session == "dear" else 1
        return REFLEX.decide(state, message)  # type: ignore[arg-type]

    sessions = [*["dear"] * 11, "cheap", *["dear"] * 5, "cheap"]
    assert PARTITIONS.session_token("dear") != PARTITIONS.session_token("cheap")
    inputs = [
        new_input("Hello", agent="ann", session=session, partitions=PARTITIONS, now_ns=1, exchange=f"e-{place}").record
        for place, session in enumerate(sessions)
    ]

    tail = JetStreamLog.tail

    async def in_one_piece(log: JetStreamLog, filters: Sequence[str], after: int) -> Tail:
        return InOnePiece(await tail(log, filters, after), len(inputs))

    monkeypatch.setattr(JetStreamLog, "tail", in_one_piece)

    async def body() -> None:
        log = await JetStreamLog.connect(broker.url, partitions=PARTITIONS)
        actor = dataclasses.replace(REFLEX, decide=decide)
        async with living(broker, "a", actors=[actor], clock=clock) as worker:
            async with asyncio.timeout(DEADLINE_S):
                await worker.worker.ready.wait()
            await log.append([Append([record]) for record in inputs])
            await until(lambda: len(decided) == len(sessions), "all decisions")
        await log.close()

    asyncio.run(body())
    assert decided == ["dear", "cheap", "cheap", *["dear"] * 15]
