"""A worker that reaches the broker and cannot read the log: nothing waits there, as far as it knows."""

import asyncio
from contextlib import AsyncExitStack, suppress

import pytest

from actors.registry import ACTORS
from actors.runtime import worker as runtime_worker
from actors.runtime.membership.heartbeat import BEAT
from deploy.processes import worker as worker_process
from deploy.processes.reading import serving_reads
from events.jetstream import JetStreamLog
from events.jetstream.connection import ApiError
from schemas.input_path import names_of, scopes
from tests.actors.runtime.living import PARTITIONS, all_partitions, living, on_broker
from tests.actors.runtime.waiting import until
from tests.broker import Broker

NAMES = names_of(scopes()["reflex"], PARTITIONS)


async def lose_consumers(log: JetStreamLog) -> None:
    """As the broker does when it starts anew."""
    for consumer in (await log.connection.api(f"CONSUMER.LIST.{log.stream}"))["consumers"]:
        with suppress(ApiError):  # a short reading has deleted its own meanwhile
            await log.connection.api(f"CONSUMER.DELETE.{log.stream}.{consumer['name']}")


def test_a_worker_to_which_nobody_serves_reads_any_more_does_not_say_that_it_serves(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its guards were dead, and no stage was lost: no message waited, since none came."""
    monkeypatch.setattr(runtime_worker, "STALL_S", 0.3)

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


@pytest.mark.parametrize(
    ("names", "other_can_read"),
    [(("reflex", "responder"), True), (("reflex", "responder"), False), (("swarm",), True)],
    ids=["shared", "none_reads", "one_partition"],
)
def test_a_worker_that_cannot_read_leaves_its_partitions_to_one_that_can_until_it_can_again(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...], other_can_read: bool
) -> None:
    """Where nobody can, none moves: what they hold would be handed round."""
    monkeypatch.setattr(runtime_worker, "STALL_S", 0.3)
    monkeypatch.setattr(worker_process, "STALL_S", 0.3)
    monkeypatch.setattr(runtime_worker, "STAND_BACK_S", 3.0)  # longer than a heartbeat takes to arrive

    async def body(log: JetStreamLog) -> None:
        async with AsyncExitStack() as reads, AsyncExitStack() as open_things:
            await reads.enter_async_context(serving_reads(log, "ledger"))
            actors = [ACTORS[name] for name in names]
            one, other = [
                await open_things.enter_async_context(living(broker, name, actors=actors, narrow=narrow))
                for name, narrow in (("one", True), ("other", not other_can_read))
            ]
            whole = all_partitions(actors)

            def are_shared() -> bool:
                led = one.leads(), other.leads()
                return all(led[: len(whole)]) and led[0] | led[1] == whole and not led[0] & led[1]

            await until(are_shared, "both to lead")
            before = one.leads()
            announced = asyncio.Event()
            announced.set()

            def fault() -> str:
                return worker_process._fault(announced, one.stop, one.log.connection, one.worker, {})

            assert before
            assert not fault()
            await reads.aclose()
            await lose_consumers(log)
            if other_can_read:
                await until(lambda: other.leads() == whole and not one.leads(), "the one that reads to lead all")
                await until(lambda: not one.worker.heartbeat().stalled, "the one that leads nothing to say so")
                assert fault() == "the log cannot be read"
            else:
                await asyncio.sleep(3.0 + 3 * BEAT)
                # Not `one.leads() == before`: a partition whose own append gets no answer leads again once it can read.
                assert before.isdisjoint(other.leads())
                assert not one.worker.heartbeat().declines
            async with serving_reads(log, "ledger"):
                await until(lambda: are_shared() and one.leads() == before, "both to lead again")

    on_broker(broker, body)
