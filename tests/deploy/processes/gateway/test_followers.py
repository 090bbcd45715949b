"""Readers of a gateway's events: how many there may be, however they come and go."""

import asyncio
import gc
from collections.abc import AsyncGenerator

import pytest

from actors.gateway.answer_wait import CHECK_INTERVAL_S, retry_until_reachable
from actors.gateway.http.loops.judgements import Judgements
from actors.gateway.metrics import Metrics
from deploy.processes.gateway import records as records_module
from deploy.processes.gateway.records import MOST_FOLLOWERS, BrokerRecords
from events.errors import NotPermitted, Unavailable, UnknownOutcome
from events.jetstream import JetStreamLog, KeyValueMembership
from tests.broker import Broker

DEADLINE_S = 30.0


def test_readers_who_come_together_are_no_more_than_those_who_come_in_turn(broker: Broker) -> None:
    async def main() -> None:
        log = await JetStreamLog.connect(broker.url)
        try:
            records = BrokerRecords(log.connection, log, asyncio.Event(), KeyValueMembership(log.connection))

            async def come() -> tuple[int, list[object]]:
                coming = (records.follow(">", None, words=False) for _ in range(MOST_FOLLOWERS * 3))
                came = await asyncio.gather(*coming, return_exceptions=True)
                return sum(isinstance(each, Unavailable) for each in came), came

            refused, came = await come()
            assert refused == MOST_FOLLOWERS * 2
            assert (await come())[0] == MOST_FOLLOWERS * 3

            # Whoever leaves before anything was sent gives the place back, too.
            came.clear()
            gc.collect()
            for _ in range(100):  # the loop closes them, each in a task of its own
                await asyncio.sleep(0)
            assert (await come())[0] == MOST_FOLLOWERS * 2
        finally:
            await log.close()

    asyncio.run(main())


def test_a_reader_is_not_told_that_nothing_is_new_while_the_log_cannot_be_read(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever waits for alerts, as the Python client does, would take the silence of a dead broker for peace."""
    monkeypatch.setattr(records_module, "KEEP_ALIVE_S", 0.1)

    async def told(events: AsyncGenerator[object, None], within_s: float) -> bool:
        coming = asyncio.ensure_future(anext(events))
        done, _ = await asyncio.wait((coming,), timeout=within_s)
        if not done:
            waiting.append(coming)
        return bool(done)

    waiting: list[asyncio.Future[object]] = []

    async def main() -> None:
        log = await JetStreamLog.connect(broker.url)
        try:
            records = BrokerRecords(log.connection, log, asyncio.Event(), KeyValueMembership(log.connection))
            events = await records.follow(">", None, words=False)
            assert await told(events, DEADLINE_S)
            await asyncio.to_thread(broker.kill)
            # One that was due before the connection was found dead may come still.
            assert not (await told(events, 0.5) and await told(events, 0.5))
            await asyncio.to_thread(broker.start)
            assert await asyncio.wait_for(waiting[0], DEADLINE_S) is None
            await events.aclose()
        finally:
            await log.close()

    asyncio.run(main())


def test_a_broker_that_dies_while_a_gateway_begins_to_read_takes_nobody_down(broker: Broker) -> None:
    """Requests are served by then: whoever ended would end them all."""

    async def main() -> None:
        log = await JetStreamLog.connect(broker.url)
        judgements = Judgements(16)
        try:
            await asyncio.to_thread(broker.kill)
            following = [asyncio.create_task(judgements.follow(log)), asyncio.create_task(Metrics().follow(log))]
            done, _ = await asyncio.wait(following, timeout=2 * CHECK_INTERVAL_S)
            assert not done
            await asyncio.to_thread(broker.start)
            async with asyncio.timeout(DEADLINE_S):
                await judgements.caught_up.wait()
            for each in following:
                each.cancel()
            await asyncio.gather(*following, return_exceptions=True)
        finally:
            await log.close()

    asyncio.run(main())


def test_a_read_that_got_no_answer_is_repeated_and_one_that_is_not_permitted_is_not() -> None:
    async def main() -> None:
        outcomes: list[Exception | str] = [UnknownOutcome("no answer"), Unavailable("away"), "read", NotPermitted("no")]

        async def reading() -> str:
            outcome = outcomes.pop(0)
            if isinstance(outcome, Exception):
                raise outcome
            return outcome

        assert await retry_until_reachable(reading) == "read"
        with pytest.raises(NotPermitted):
            await retry_until_reachable(reading)

    asyncio.run(main())
