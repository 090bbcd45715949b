"""A worker that reaches the broker and cannot read the log: nothing waits there, as far as it knows."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from actors.registry import ACTORS
from actors.runtime import worker as runtime_worker
from deploy.processes.reading import serving_reads
from events.jetstream import JetStreamLog
from schemas.input_path import names_of, scopes
from tests.actors.runtime.living import PARTITIONS, living, on_broker
from tests.actors.runtime.waiting import until
from tests.broker import Broker

NAMES = names_of(scopes()["reflex"], PARTITIONS)


def test_a_worker_to_which_nobody_serves_reads_any_more_does_not_say_that_it_serves(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its guards were dead, and no stage was lost: no message waited, since none came."""
    monkeypatch.setattr(runtime_worker, "STALL_S", 0.3)

    async def lose_consumers(log: JetStreamLog) -> None:
        """As the broker does when it starts anew."""
        for consumer in (await log.connection.api(f"CONSUMER.LIST.{log.stream}"))["consumers"]:
            await log.connection.api(f"CONSUMER.DELETE.{log.stream}.{consumer['name']}")

    async def body(log: JetStreamLog) -> None:
        async with AsyncExitStack() as reads, AsyncExitStack() as open_things:
            await reads.enter_async_context(serving_reads(log, "ledger"))
            reflex = await open_things.enter_async_context(
                living(broker, "w", actors=(ACTORS["reflex"],), standby=False, narrow=True)
            )

            def said(**wanted: tuple[str, ...]) -> bool:
                heartbeat = reflex.worker.heartbeat()
                return dict(heartbeat.serves) == wanted and dict(heartbeat.stalled) == (
                    {} if wanted else {"reflex": NAMES}
                )

            await until(lambda: said(reflex=NAMES), "it to serve")
            await asyncio.sleep(1.0)
            assert said(reflex=NAMES), "nothing waits for it, and nothing is wrong"
            await reads.aclose()
            await lose_consumers(log)
            await until(said, "it to say that it does not")
            async with serving_reads(log, "ledger"):
                await until(lambda: said(reflex=NAMES), "it to serve again")

    on_broker(broker, body)
