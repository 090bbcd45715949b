"""The echo at work on a real broker: workers that run it, and what the log holds of its answers."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Sequence

from actors.runtime.effectors.effector_worker import EffectorWorker
from events.decoding import Recorded, decode
from events.errors import LogError
from events.jetstream import JetStreamLog
from events.log import Append
from schemas.effectors.contract import Effector
from schemas.event import Event
from schemas.permissions import durable_name
from tests.actors.runtime.effectors.echo import question
from tests.actors.runtime.waiting import until
from tests.broker import Broker
from tests.events.setting import collect

OWN = ("log.*.*.echo.>",)


@contextlib.asynccontextmanager
async def running(
    broker: Broker, what: Effector, *, name: str = "w", ack_wait: float = 30.0, stop_deadline: float = 10.0
) -> AsyncIterator[tuple[EffectorWorker, asyncio.Event]]:
    """Run a worker over a connection of its own; what it is told to do is to stop, at the latest at the block's end."""
    log = await JetStreamLog.connect(broker.url)
    worker = EffectorWorker(log, what, name=name, ack_wait=ack_wait, stop_deadline=stop_deadline, newer_s=0.2)
    stop = asyncio.Event()
    try:
        async with asyncio.timeout(90), asyncio.TaskGroup() as tasks:
            tasks.create_task(worker.run(stop))
            try:
                yield worker, stop
            finally:
                stop.set()
    finally:
        await log.close()


async def answers(log: JetStreamLog) -> list[Recorded]:
    """Return what the effector has stored, in order."""
    found = [decode(stored) for stored in await collect(log, filters=OWN)]
    assert all(isinstance(each, Recorded) for each in found)
    return [each for each in found if isinstance(each, Recorded)]


async def answered(log: JetStreamLog, count: int) -> list[Recorded]:
    """Wait for ``count`` answers, and return them."""

    async def there() -> bool:
        try:
            return len(await answers(log)) >= count
        except LogError:
            return False  # the broker is being restarted

    await until(there, f"{count} answers")
    return await answers(log)


async def outcome(log: JetStreamLog) -> Event:
    """Wait for the one answer, and return its event."""
    [found] = await answered(log, 1)
    return found.message.event


async def all_acknowledged(log: JetStreamLog) -> None:
    """Wait until the broker has every request as done with."""

    async def there() -> bool:
        try:
            info = await log.connection.api(f"CONSUMER.INFO.{log.stream}.{durable_name('echo')}")
        except LogError:
            return False  # the consumer is not made yet, or the broker is being restarted
        return bool(info["ack_floor"]["stream_seq"]) and not info["num_pending"] and not info["num_ack_pending"]

    await until(there, "every request to be acknowledged")


def once_each(found: Sequence[Recorded], count: int) -> bool:
    """Whether each of the first ``count`` requests has exactly one answer, and nothing else has."""
    return Counter(each.message.exchange for each in found) == {f"exchange-{n}": 1 for n in range(count)}


async def stored(log: JetStreamLog, number: int) -> bool:
    try:
        await log.append([Append([question(number)])])
    except LogError:
        return False
    return True
