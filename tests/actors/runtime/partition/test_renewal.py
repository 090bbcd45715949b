"""An order to forget has every partition that may keep the words take another snapshot."""

import asyncio

from actors.gateway.operator_orders import Order
from actors.registry import ACTORS
from deploy.operating.order_client import give
from events.jetstream import JetStreamLog, KeyValueSnapshots
from events.log import Stored
from events.routes import partition_names, partitions_of
from events.snapshot import snapshot_key, unpack
from schemas.event import topic_of
from schemas.subjects import topic_filter
from schemas.vocabulary.operator import ForgetOrdered
from tests.actors.runtime.living import PARTITIONS, Living, all_partitions, at_rest, converse, living
from tests.actors.runtime.waiting import until
from tests.broker import Broker
from tests.events.setting import collect

ORDER = ForgetOrdered(what="session", by="ann", why="she asked")


def concerned(order: Stored) -> set[str]:
    """Return the snapshots of the partitions that an order concerns."""
    return {
        snapshot_key(actor, partition)
        for actor in ACTORS.values()
        for partition in partitions_of(actor, order.subject, PARTITIONS)
    }


async def order_to_forget(log: JetStreamLog, agent: str, session: str) -> Stored:
    seq = (await give(log, [Order(event=ORDER, agent=agent, session=session)], 30)).seq
    return (await collect(log, seq - 1, seq, [topic_filter(topic_of(ForgetOrdered))]))[0]


async def saved_since(log: JetStreamLog, order: Stored) -> set[str]:
    """Return the snapshots that were taken behind an order."""
    shelf = KeyValueSnapshots(log.connection)
    keys = [snapshot_key(actor, name) for actor in ACTORS.values() for name in partition_names(actor, PARTITIONS)]
    return {key for key in keys if (await shelf.upto(key) or 0) >= order.seq}


def test_exactly_the_partitions_that_an_order_concerns_take_a_snapshot_behind_it(broker: Broker) -> None:
    async def body() -> None:
        async with living(broker, "a") as worker:
            await until(lambda: worker.leads() == all_partitions(), "it to lead everything")
            await converse(worker.log, 4, 2)
            await at_rest(worker.log)
            assert worker.worker.counters.snapshots == 0
            order = await order_to_forget(worker.log, "agent-0", "session-0")
            wanted = concerned(order)

            async def renewed() -> bool:
                return await saved_since(worker.log, order) >= wanted

            await until(renewed, "the snapshots")
            assert await saved_since(worker.log, order) == wanted
            await assert_behind(worker, order)

    asyncio.run(body())


async def assert_behind(worker: Living, order: Stored) -> None:
    """Assert that every actor that heard the order had folded it when its snapshot was taken."""
    shelf = KeyValueSnapshots(worker.log.connection)
    hearing = [actor for actor in ACTORS.values() if ForgetOrdered in actor.consumes]
    assert {"appraisal", "memory", "responder"} <= {actor.name for actor in hearing}
    for actor in hearing:
        for partition in partitions_of(actor, order.subject, PARTITIONS):
            data = await shelf.load(snapshot_key(actor, partition))
            assert data is not None
            standing = unpack(actor, partition, data)
            assert standing is not None
            assert standing.position >= order.seq


def test_an_order_amid_other_work_is_followed_too(broker: Broker) -> None:
    async def body() -> None:
        async with living(broker, "a", snapshot_every=5) as worker:
            await until(lambda: worker.leads() == all_partitions(), "it to lead everything")
            talking = asyncio.create_task(converse(worker.log, 6, 6))
            await until(lambda: worker.worker.counters.snapshots > 3, "snapshots under load")
            order = await order_to_forget(worker.log, "agent-0", "session-0")

            async def renewed() -> bool:
                return await saved_since(worker.log, order) >= concerned(order)

            await until(renewed, "the snapshots")
            await talking
            await at_rest(worker.log)

    asyncio.run(body())
