"""What an effector for which order matters is told: who is on its way, whose answer is stored, and who merely waits."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from actors.runtime.effector import EffectorWorker
from events.jetstream import JetStreamLog
from schemas.actor import Emission, Message
from schemas.event import Event
from schemas.permissions import durable_name
from tests.actors.runtime.echo import ask, echo, effector
from tests.actors.runtime.echoing import all_acknowledged, answered, answers, on_broker, once_each, running
from tests.actors.runtime.test_effector import stored
from tests.actors.runtime.waiting import DEADLINE_S, until
from tests.broker import Broker

pytestmark = pytest.mark.usefixtures("echo_vocabulary")


async def endless(_: Message) -> Sequence[Event | Emission]:
    async with asyncio.timeout(DEADLINE_S):
        await asyncio.Event().wait()
    raise AssertionError("unreachable")


def test_a_performance_has_ended_when_its_answer_is_in_the_log(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    store = EffectorWorker._append

    async def storing(worker: EffectorWorker, *what: object) -> bool:
        told.append("storing")
        await asyncio.sleep(0)
        done = await store(worker, *what)  # type: ignore[arg-type]  # as it was called
        told.append("stored")
        return done

    monkeypatch.setattr(EffectorWorker, "_append", storing)

    async def body(log: JetStreamLog) -> None:
        one = replace(effector(concurrency=1), ended=lambda request: told.append(request.exchange))
        async with running(broker, one):
            await ask(log, 0, 1)
            await answered(log, 2)
            await all_acknowledged(log)
        assert told == ["storing", "stored", "exchange-0", "storing", "stored", "exchange-1"]

    on_broker(broker, body)


def test_a_performance_that_is_handed_back_has_ended_and_one_that_never_began_has_not(broker: Broker) -> None:
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
        async with running(broker, one):
            await all_acknowledged(log)
        assert ended == [], "it was answered"

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
        one = replace(effector(endless), begins=told.append)
        async with running(broker, one, ack_wait=5.0, stop_deadline=0.0) as (first, _):
            await first.ready.wait()
            assert told == [0.0], "nothing is out with anybody"
            await ask(log, 0)
            await until(lambda: first.counters.performed == 1, "a request to be out")
            async with running(broker, one, name="v", ack_wait=5.0, stop_deadline=0.0) as (second, _):
                await second.ready.wait()
                assert told[1:] == [6.0]
            broker.kill()
            broker.start()
            await until(lambda: stored(log, 1), "the broker to be back")
            await until(lambda: first.counters.performed == 2, "the worker to go on")
            assert len(told) == 2, "what is out with itself is no news"

    on_broker(broker, body)
