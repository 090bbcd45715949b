"""What an effector for which order matters is told: who is on its way, whose answer is stored, and who merely waits."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from actors.runtime.effectors.answers import Answer, Answers
from events.jetstream import JetStreamLog
from schemas.actor import Emission, Message
from schemas.event import Event
from schemas.permissions import durable_name
from tests.actors.on_broker import on_broker
from tests.actors.runtime.echo import ask, echo, effector
from tests.actors.runtime.echoing import all_acknowledged, answered, answers, once_each, running, stored
from tests.actors.runtime.waiting import DEADLINE_S, until
from tests.broker import Broker

pytestmark = pytest.mark.usefixtures("echo_vocabulary")


async def endless(_: Message) -> Sequence[Event | Emission]:
    async with asyncio.timeout(DEADLINE_S):
        await asyncio.Event().wait()
    raise AssertionError("unreachable")


def test_a_performance_has_ended_when_its_answer_is_in_the_log(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    store = Answers.store

    async def storing(answers: Answers, filter: str, answer: Answer) -> bool:
        told.append("storing")
        await asyncio.sleep(0)
        done = await store(answers, filter, answer)
        told.append("stored")
        return done

    monkeypatch.setattr(Answers, "store", storing)

    async def body(log: JetStreamLog) -> None:
        one = replace(effector(concurrency=1), ended=lambda request: told.append(request.exchange))
        async with running(broker, one):
            await ask(log, 0, 1)
            await answered(log, 2)
            await all_acknowledged(log)
        assert told == ["storing", "stored", "exchange-0", "storing", "stored", "exchange-1"]

    on_broker(broker, body)


def test_a_turn_has_ended_too_where_it_is_handed_back_or_was_answered_already(broker: Broker) -> None:
    ended: list[str] = []

    async def body(log: JetStreamLog) -> None:
        one = replace(effector(endless), ended=lambda request: ended.append(request.exchange))
        async with running(broker, one, stop_deadline=0.05) as (worker, _):
            await ask(log, 0)
            await until(lambda: worker.counters.performed == 1, "a performance")
        assert ended == ["exchange-0"]
        async with running(broker, effector()):
            await answered(log, 1)
        ended.clear()
        await log.connection.api(f"CONSUMER.DELETE.{log.stream}.{durable_name('echo')}")
        async with running(broker, one) as (worker, _):
            await all_acknowledged(log)
        assert (ended, worker.counters.performed) == (["exchange-0"], 0)

    on_broker(broker, body)


def test_a_worker_that_stops_waits_for_no_performance_that_merely_waits(broker: Broker) -> None:
    async def body(log: JetStreamLog) -> None:
        acts, finish = asyncio.Event(), asyncio.Event()
        handed_back: list[str] = []

        async def perform(message: Message) -> Sequence[Event | Emission]:
            if message.exchange != "exchange-0":
                return await endless(message)
            acts.set()
            async with asyncio.timeout(DEADLINE_S):
                await finish.wait()
            return await echo(message)

        one = replace(
            effector(perform),
            waits=lambda request: request.exchange != "exchange-0",
            ended=lambda request: handed_back.append(request.exchange),
        )
        async with running(broker, one, ack_wait=1800.0, stop_deadline=1800.0) as (worker, stop):
            await ask(log, 0, 1, 2)
            await until(lambda: acts.is_set() and worker.counters.performed == 3, "all performances")
            stop.set()
            await until(lambda: len(handed_back) == 2, "those that wait to be handed back")
            assert set(handed_back) == {"exchange-1", "exchange-2"}
            finish.set()
        assert len(await answers(log)) == 1
        async with running(broker, effector()):
            assert once_each(await answered(log, 3), 3)

    on_broker(broker, body)


def test_a_worker_tells_within_what_time_older_requests_may_still_come(broker: Broker) -> None:
    async def body(log: JetStreamLog) -> None:
        told: list[float] = []
        one = replace(effector(endless), on_start=told.append)
        async with running(broker, one, ack_wait=5.0, stop_deadline=0.05) as (first, _):
            await first.ready.wait()
            assert told == [0.0], "nothing is out with anybody"
            await ask(log, 0)
            await until(lambda: first.counters.performed == 1, "a request to be out")
            async with running(broker, one, name="v", ack_wait=5.0) as (second, _):
                await second.ready.wait()
                assert told[1:] == [6.0]
            broker.kill()
            broker.start()
            await until(lambda: stored(log, 1), "the broker to be back")
            await until(lambda: first.counters.performed == 2, "the worker to go on")
            assert len(told) == 2, "what is out with itself is no news"

    on_broker(broker, body)


def test_a_worker_tells_when_all_that_were_out_have_come(broker: Broker) -> None:
    async def body(log: JetStreamLog) -> None:
        told: list[float] = []
        waiting = replace(effector(endless), waits=lambda _: True)
        async with running(broker, waiting, ack_wait=1800.0) as (worker, _):
            await ask(log, 0, 1, 2)
            await until(lambda: worker.counters.performed == 3, "all to be out")
        async with running(broker, replace(effector(), on_start=told.append), ack_wait=1800.0):
            await answered(log, 3)
            assert told == [1801.0, 0.2]

    on_broker(broker, body)


def test_of_workers_that_work_alone_one_performs_and_another_takes_over_when_it_stops(broker: Broker) -> None:
    async def body(log: JetStreamLog) -> None:
        one = replace(effector(), exclusive=True)
        async with running(broker, one, name="b", ack_wait=1800.0) as (second, _):
            await second.ready.wait()
            async with running(broker, one, name="a", ack_wait=1800.0) as (first, _):
                await first.ready.wait()
                await ask(log, *range(10))
                await answered(log, 10)
                assert sorted((first.counters.performed, second.counters.performed)) == [0, 10]
            await ask(log, *range(10, 15))
            assert once_each(await answered(log, 15), 15)
            async with running(broker, one, name="c", ack_wait=1800.0) as (third, _):
                await third.ready.wait()
                await ask(log, 15)
                await answered(log, 16)

    on_broker(broker, body)


def test_a_worker_that_works_alone_stays_it_while_it_has_no_room_and_keeps_the_order(broker: Broker) -> None:
    async def body(log: JetStreamLog) -> None:
        go_on = asyncio.Event()
        performed: list[str] = []

        async def perform(message: Message) -> Sequence[Event | Emission]:
            async with asyncio.timeout(DEADLINE_S):
                await go_on.wait()
            performed.append(message.exchange)
            return await echo(message)

        one = replace(effector(perform, concurrency=1), exclusive=True)
        async with running(broker, one, ack_wait=2.0) as (worker, _), running(broker, one, name="v", ack_wait=2.0):
            await ask(log, *range(5))
            await until(lambda: handed_back(log), "a request that there is no room for to come and go")
            assert worker.counters.delivered in (0, 1), "the one that is under way, if it is this one that works"
            go_on.set()
            assert once_each(await answered(log, 5), 5)
        assert performed == [f"exchange-{number}" for number in range(5)]

    on_broker(broker, body)


async def handed_back(log: JetStreamLog) -> bool:
    info = await log.connection.api(f"CONSUMER.INFO.{log.stream}.{durable_name('echo')}")
    return bool(info["num_redelivered"])
