"""The projection: bounded, caught up before it is asked, and of no use to anybody but who waits."""

import asyncio

import pytest

from actors.gateway.http.loops import judgements
from actors.gateway.http.loops.judgements import Judgements
from events.log import Append, Record
from schemas.catalogue import entry_of
from schemas.event import encode_event, topic_of
from schemas.subjects import NO_PARTITION, stored_subject
from schemas.vocabulary.guardrails import GuardrailsFinalized
from tests.actors.gateway.http.rig import complete, gateway, guarding
from tests.each import each
from tests.events.simulated_world import in_world, log_of, world_test
from tests.simulated import Faults, SimulatedStream


async def followed(stream: SimulatedStream, most: int) -> Judgements:
    """Read all of a log."""
    found = Judgements(most)
    following = asyncio.create_task(found.follow(log_of(stream)))
    await found.caught_up.wait()
    following.cancel()
    return found


@each("most", [1, 3, 10])
@world_test
async def test_the_latest_judgements_are_kept_and_the_oldest_dropped(stream: SimulatedStream, most: int) -> None:
    async with guarding(stream), gateway(stream) as client:
        for number in range(5):
            await complete(client, loop_id=f"loop_{number}")
    found = await followed(stream, most)
    kept = [number for number in range(5) if found.of("default", f"loop_{number}") is not None]
    assert kept == list(range(5))[-most:]


def test_they_are_found_however_far_back_in_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judgements, "_FIRST_WINDOW", 2)

    async def body(stream: SimulatedStream) -> None:
        async with guarding(stream), gateway(stream) as client:
            for number in range(4):
                await complete(client, loop_id=f"loop_{number}")
            for _ in range(50):
                await client.post("/v1/ticks", json={"citizen": "felix"})
            for number in range(4, 6):
                await complete(client, loop_id=f"loop_{number}")
        kept = await followed(stream, 3)
        assert [kept.of("default", f"loop_{number}") is not None for number in range(6)] == [False] * 3 + [True] * 3
        everything = await followed(stream, 100)
        assert all(everything.of("default", f"loop_{number}") is not None for number in range(6))

    in_world(body)


@world_test
async def test_an_empty_log_is_caught_up_with_at_once(stream: SimulatedStream) -> None:
    assert (await followed(stream, 4)).of("default", "loop_001") is None


def test_it_is_caught_up_only_when_it_holds_all_that_was_there_at_the_start() -> None:
    async def body(stream: SimulatedStream) -> None:
        async with guarding(stream), gateway(stream) as client:
            for number in range(30):
                await complete(client, loop_id=f"loop_{number}")
        stream.faults = Faults(delivery_delay_s=(0.1, 0.5), pages=(1, 3))
        found = await followed(stream, 100)
        assert found.of("default", "loop_29") is not None

    in_world(body, seed=3)


@world_test
async def test_an_answer_that_a_later_release_wrote_is_told_at_once_and_not_as_one_that_did_not_come(
    stream: SimulatedStream,
) -> None:
    async with gateway(stream) as client:
        loop = asyncio.get_running_loop()
        begun, completing = loop.time(), asyncio.create_task(complete(client, loop_id="loop"))
        await asyncio.sleep(1)
        asked = stream.store.messages[-1]
        headers = {"ce-id": "later", "ce-type": topic_of(GuardrailsFinalized), "ce-dataversion": "2"}
        headers["ce-cause"] = asked.headers["ce-id"]
        subject = stored_subject(topic_of(GuardrailsFinalized), asked.subject.split(".")[1], NO_PARTITION)
        data = encode_event(entry_of(GuardrailsFinalized).sample)
        await log_of(stream).append([Append((Record(subject, headers, data),))])
        answer = await completing
        assert answer.status_code == 504
        assert "(sequence 2), by an event that this process cannot read" in answer.json()["message"]
        assert loop.time() - begun < 5


@world_test
async def test_several_may_wait_for_one_answer_and_one_of_them_may_leave(stream: SimulatedStream) -> None:
    found = Judgements(4)
    following = asyncio.create_task(found.follow(log_of(stream)))
    async with guarding(stream), gateway(stream) as client:
        await complete(client, loop_id="before")
        cause = stream.store.messages[-1].headers["ce-cause"]
        with found.awaited(cause) as one:
            with found.awaited(cause) as other:
                assert (await other).id == (await one).id
            assert one.done()
    following.cancel()
