"""Whether a cluster stores, where its servers answer late, differ, or refuse: few consumers are made, none is left."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from events.errors import LogError, NoLeader, NotPermitted, UnknownOutcome
from events.jetstream import JetStreamLog
from events.jetstream.storage_check import CHECK_DEADLINE_S, MAY_NOT_ASK, storage_fault
from tests.actors.on_broker import on_broker
from tests.actors.runtime.waiting import until
from tests.broker import Broker

SOON_S = 3.0
"""Seconds within which a deleted consumer is gone, long before an idle one expires (5 s)."""


class AsCluster:
    """A connection to one server that says of itself that it is three, of which the next one takes each consumer.

    ``answers`` is called with the number of each consumer that has been made, from 1 on, and its answer; it may wait,
    raise, or name the server that took it. ``made`` counts them.
    """

    def __init__(self, log: JetStreamLog, answers: Callable[[int], Awaitable[str]]) -> None:
        self._connection = log.connection
        self._answers = answers
        self.connected = True
        self.access, self.new_name, self.publish = (
            log.connection.access,
            log.connection.new_name,
            log.connection.publish,
        )
        self.made = 0

    async def api(self, subject: str, body: Any = None) -> dict[str, Any]:
        found = await self._connection.api(subject, body)
        if subject.startswith("CONSUMER.CREATE."):
            self.made += 1
            return found | {"cluster": {"leader": await self._answers(self.made)}}
        if subject.startswith("STREAM.INFO."):
            return found | {"config": found["config"] | {"num_replicas": 3}}
        return found


async def looked(log: JetStreamLog, answers: Callable[[int], Awaitable[str]]) -> tuple[str, int]:
    """Return what one look at such a cluster finds, and how many consumers it made; none is left soon after."""
    cluster = AsCluster(log, answers)
    found = await storage_fault(cluster, log.stream)  # type: ignore[arg-type]

    async def none_left() -> bool:
        return not (await log.connection.api(f"STREAM.INFO.{log.stream}"))["state"]["consumer_count"]

    async with asyncio.timeout(SOON_S):
        await until(none_left, "no consumer to be left")
    return found, cluster.made


def test_a_slow_cluster_is_asked_for_few_consumers_and_keeps_none(broker: Broker) -> None:
    async def slowly(number: int) -> str:
        await asyncio.sleep(0.6)
        return "one"

    async def scenario(log: JetStreamLog) -> None:
        found, made = await looked(log, slowly)
        assert found == ""
        assert made <= 4

    on_broker(broker, scenario)


def test_a_cluster_that_does_not_answer_in_time_is_told_and_keeps_no_consumer(broker: Broker) -> None:
    async def never(number: int) -> str:
        await asyncio.sleep(60)
        return "one"

    async def scenario(log: JetStreamLog) -> None:
        found, made = await looked(log, never)
        assert found == f"the broker has not answered within {CHECK_DEADLINE_S:g} s"
        assert made <= 10

    on_broker(broker, scenario)


def test_a_cluster_stores_although_some_of_its_servers_answers_are_bad(broker: Broker) -> None:
    bad: list[LogError] = [NoLeader("no leader now"), UnknownOutcome("no answer")]

    async def badly_at_first(number: int) -> str:
        if number <= len(bad):
            raise bad[number - 1]
        return f"server {number % 2}"

    async def scenario(log: JetStreamLog) -> None:
        assert (await looked(log, badly_at_first))[0] == ""

    on_broker(broker, scenario)


def test_a_cluster_of_which_no_majority_answers_well_does_not_store(broker: Broker) -> None:
    async def one_stores(number: int) -> str:
        if number % 3 == 2:
            return "the one that stores"
        raise UnknownOutcome("no answer")

    async def scenario(log: JetStreamLog) -> None:
        assert await looked(log, one_stores) == ("no answer", 17)

    on_broker(broker, scenario)


def test_a_right_that_is_lacking_for_one_consumer_is_told(broker: Broker) -> None:
    async def denied(number: int) -> str:
        raise NotPermitted("no right")

    async def scenario(log: JetStreamLog) -> None:
        cluster = AsCluster(log, denied)
        assert await storage_fault(cluster, log.stream) == MAY_NOT_ASK  # type: ignore[arg-type]
        assert cluster.made == 1

    on_broker(broker, scenario)
