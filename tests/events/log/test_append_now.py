"""An append that is sent before the call returns: it is stored, fenced and in doubt exactly as an awaited one is."""

import asyncio
import gc
from collections import Counter

import pytest

from events.errors import Conflict, Unavailable, UnknownOutcome
from events.jetstream.connection import Reply
from events.log import MAX_RECORD_BYTES, Append, Log
from tests.broker import Broker
from tests.events.setting import RunOnLog, Setting, back, bodies, fenced, plain, read, record, run_on_jetstream

REFLEX = "log.*.00.reflex.>"


def send(log: Log, append: Append) -> asyncio.Future[int | BaseException]:
    """Send an append that can be sent at once; return the future of what becomes of it."""
    outcome: asyncio.Future[int | BaseException] = asyncio.get_running_loop().create_future()
    assert log.append_now(append, outcome.set_result)
    assert not outcome.done(), "a caller is told in a later turn, so that it can note what it has sent"
    return outcome


def test_what_is_sent_in_one_turn_is_stored_in_that_order(run_on_log: RunOnLog) -> None:
    async def body(setting: Setting) -> None:
        sent = [send(setting.log, plain(record(data=b"%d" % number, id=f"{number}"))) for number in range(40)]
        outcomes = await asyncio.gather(*sent)
        stored = await bodies(setting.log)
        assert sorted(outcomes) == list(range(1, 41))
        assert [stored[seq - 1] for seq in outcomes] == [b"%d" % number for number in range(40)]

    run_on_log(body)


def test_an_awaited_append_in_the_same_turn_comes_behind(broker: Broker) -> None:
    async def body(setting: Setting) -> None:
        sent = send(setting.log, plain(record(id="first")))
        assert await setting.log.append([plain(record(id="second"))]) == 2
        assert await sent == 1

    run_on_jetstream(broker, body)


@pytest.mark.parametrize("expected", [0, 1, 3])
def test_a_fence_that_does_not_hold_is_told_and_stores_nothing(run_on_log: RunOnLog, expected: int) -> None:
    async def body(setting: Setting) -> None:
        await setting.log.append([plain(record(data=b"1"), record(data=b"2"))])
        assert isinstance(await send(setting.log, fenced(REFLEX, expected, record(data=b"late", id="late"))), Conflict)
        assert await send(setting.log, fenced(REFLEX, 2, record(data=b"3", id="3"))) == 3
        assert await bodies(setting.log) == [b"1", b"2", b"3"]

    run_on_log(body)


def test_a_known_message_id_behind_a_fence_is_a_conflict(run_on_log: RunOnLog) -> None:
    async def body(setting: Setting) -> None:
        assert await send(setting.log, fenced(REFLEX, 0, record(id="a"))) == 1
        assert isinstance(await send(setting.log, fenced(REFLEX, 1, record(id="a"))), Conflict)
        assert await send(setting.log, plain(record(id="a"))) == 1

    run_on_log(body)


def test_a_broker_that_dies_meanwhile_leaves_the_append_in_doubt(broker: Broker) -> None:
    async def body(setting: Setting) -> None:
        broker.pause()
        sent = send(setting.log, plain(record(id="a")))
        await asyncio.sleep(0)  # what was published in this turn is written
        setting.kill_broker()
        assert isinstance(await sent, UnknownOutcome)
        setting.start_broker()
        await back(setting)

    run_on_jetstream(broker, body)


def test_a_broker_that_hangs_leaves_the_append_in_doubt_and_stores_it_when_it_wakes(broker: Broker) -> None:
    async def body(setting: Setting) -> None:
        broker.pause()
        try:
            assert isinstance(await send(setting.log, plain(record(id="a"))), UnknownOutcome)
        finally:
            broker.resume()
        tail = await setting.log.tail(["log.>"], 0)
        assert [stored.seq for stored in await read(tail, 1)] == [1]
        await tail.close()

    run_on_jetstream(broker, body)


def test_what_cannot_be_sent_at_once_is_not_sent_at_all(broker: Broker) -> None:
    def never(outcome: int | BaseException) -> None:
        raise AssertionError(f"nothing was sent, and became {outcome}")

    async def body(setting: Setting) -> None:
        large = record(data=b"x" * (2 * MAX_RECORD_BYTES), id="large")
        strange = record(**{"ce-agent": "one\ntwo"})
        assert not setting.log.append_now(plain(large), never)
        assert not setting.log.append_now(plain(strange), never)
        setting.kill_broker()
        with pytest.raises((Unavailable, UnknownOutcome)):
            await setting.log.info()  # the client notices
        assert not setting.log.append_now(plain(record(data=b"late", id="late")), never)
        setting.start_broker()
        await back(setting)
        assert b"late" not in await bodies(setting.log)

    run_on_jetstream(broker, body)


def test_calls_of_the_broker_leave_nothing_to_the_garbage_collector(broker: Broker) -> None:
    async def body(setting: Setting) -> None:
        async def call(name: str) -> None:
            await send(setting.log, plain(record(id=name)))
            await setting.log.append([plain(record(id=f"{name} awaited"))])
            await setting.log.at(1)

        await call("first")
        gc.collect()
        gc.set_debug(gc.DEBUG_SAVEALL)
        try:
            for number in range(20):
                await call(f"{number}")
            gc.collect()
            left = Counter(type(each).__name__ for each in gc.garbage if isinstance(each, (Reply, asyncio.Future)))
        finally:
            gc.set_debug(0)
            gc.garbage.clear()
        assert left == {}

    run_on_jetstream(broker, body)
