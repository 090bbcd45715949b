"""More timers are due at once than a partition may have under way: after an outage, each open exchange has one."""

import asyncio
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from actors.gateway import Client, new_input
from actors.registry import ACTORS
from actors.runtime.partition import decision_loop
from events.jetstream import JetStreamLog
from schemas.vocabulary.clock import ClockFired
from tests.actors.runtime.living import PARTITIONS, OnlyMe, living
from tests.broker import Broker
from tests.events.setting import collect
from tests.judging import exchanges

FEW = 10
MANY = 3 * FEW + 1
GIVEN_S = 90


class GivenUp(BaseException):
    """The time is over; no task catches it."""


@contextmanager
def given_up_after(seconds: int) -> Iterator[None]:
    """Raise GivenUp in the block after a time, even if a task keeps the loop to itself."""

    def give_up(*_: object) -> None:
        raise GivenUp(f"not done within {seconds} s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def test_more_deadlines_than_fit_the_outbox_are_all_fired(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decision_loop, "_OUTBOX", FEW)

    async def main() -> None:
        log = await JetStreamLog.connect(broker.url, partitions=PARTITIONS)
        async with Client.open(log) as edge:
            await asyncio.gather(
                *(
                    edge.submit(
                        new_input(
                            "Hello",
                            agent="agent",
                            session=f"session-{number}",
                            partitions=PARTITIONS,
                            now_ns=time.time_ns(),
                            deadline_after_ms=1,
                        )
                    )
                    for number in range(MANY)
                )
            )
        async with living(broker, "clock", actors=(ACTORS["clock"],), membership=OnlyMe()) as worker:
            while len(exchanges(await collect(log), ClockFired)) < MANY:  # noqa: ASYNC110 - another task appends
                await asyncio.sleep(0.05)
            await worker.stopped()
        await log.close()

    with given_up_after(GIVEN_S):
        asyncio.run(main())
