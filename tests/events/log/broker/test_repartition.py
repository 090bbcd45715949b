"""A log gets more partitions: every state and every end stays, nobody decides twice, and workers go on."""

import asyncio
from collections.abc import Sequence

import msgspec
import pytest

from actors.gateway import Client, ExchangeEnd, new_input
from actors.registry import ACTORS
from deploy.config.loading import RUNNING_SECTIONS, load
from deploy.copying.repartitioning import Repartitioned, _close, _move_fences, cancel, repartition
from events.errors import Misconfigured
from events.jetstream import Access, JetStreamLog
from events.log import Append, Stored
from events.replay.replay import Replay
from events.replay.run_replay import Point, run_replay
from events.replay.sources import StreamSource
from events.replay.states.partition_state import state_at
from schemas.identity import event_id
from schemas.subjects import FormerCounts, Partitions, split_stored
from schemas.vocabulary.responder import ResponseEmitted
from tests.actors.runtime.living import PARTITIONS, OnlyMe, at_rest, converse, living, on_broker
from tests.actors.runtime.waiting import DEADLINE_S
from tests.broker import Broker
from tests.events.sealing.records import said
from tests.events.setting import collect
from tests.judging import broken_promises, exchanges, replayed

SESSIONS = 6
CONFIG = load(RUNNING_SECTIONS, environment={})
AFTER = (2 * PARTITIONS.agents, 3 * PARTITIONS.sessions)


async def divided(broker: Broker, agents: int = AFTER[0], sessions: int = AFTER[1]) -> Repartitioned:
    return await repartition(Access(servers=broker.url), CONFIG, agents, sessions, lambda _what, _seq: None)


async def opened(broker: Broker) -> JetStreamLog:
    return await JetStreamLog.connect(broker.url, create=False)


async def asked(log: JetStreamLog, texts: Sequence[tuple[int, int, str]], *, awaited: bool = True) -> list[ExchangeEnd]:
    """Send inputs, each of a session and a turn, under the counts that ``log`` was opened with."""
    ends = []
    async with Client.open(log) as edge:
        for session, turn, text in texts:
            addressed = new_input(
                text,
                agent=f"agent-{session}",
                session=f"session-{session}",
                partitions=log.partitions,
                now_ns=1_750_000_000_000_000_000,
                exchange=event_id(f"session-{session}", "test", turn),
            )
            await edge.submit(addressed)
            if awaited:
                ends.append(await edge.await_end(addressed.exchange, DEADLINE_S))
    return ends


async def promises_broken(broker: Broker) -> list[str]:
    """Return the promises that the log does not keep, once it is at rest under the counts that it has now."""
    log = await opened(broker)
    try:
        async with asyncio.timeout(DEADLINE_S):
            while True:
                found = await collect(log)
                replay = replayed(EVERY, found, log.partitions)
                if not any(each.pending for each in replay[1].coverage.values()):
                    return broken_promises(EVERY, found, exchanges(found, ResponseEmitted), log.partitions, replay)
                await asyncio.sleep(0.05)
    finally:
        await log.close()


EVERY = tuple(ACTORS.values())


def test_every_state_and_event_stays_and_a_conversation_goes_on(broker: Broker) -> None:
    async def body(log: JetStreamLog) -> None:
        async with living(broker, "before") as worker:
            ends = await converse(log, SESSIONS, 2)
            await at_rest(log)
            await worker.stopped()
        stored = await collect(log)
        done = await divided(broker)
        assert (done.before, done.after.agents, done.after.sessions) == (PARTITIONS, *AFTER)
        after = await opened(broker)
        assert after.partitions == Partitions(*AFTER, (FormerCounts(done.through, *counts_of(PARTITIONS)),))
        assert (await collect(after))[: len(stored)] == stored
        async with living(broker, "after", partitions=Partitions(*AFTER)) as worker:
            ends += await asked(after, [(number, 9, "Do you remember what we said?") for number in range(SESSIONS)])
            assert await promises_broken(broker) == []
            assert states_of(worker.worker) == await states_in(after)
            await worker.stopped()
        assert {end.exchange for end in ends} == set(exchanges(await collect(after), ResponseEmitted))
        # What was before is looked at under the counts of then.
        source = StreamSource(after)
        key = after.partitions.session_token("session-1")
        then = await state_at(source, ACTORS["breaker"], key, "session-1", Point(seq=len(stored)), lambda _: None)
        now = await state_at(source, ACTORS["breaker"], key, "session-1", Point(), lambda _: None)
        assert (then.partition, now.partition) == (PARTITIONS.session_token("session-1"), key)
        assert then.under_key
        assert now.under_key
        await after.close()

    on_broker(broker, body)


def counts_of(partitions: Partitions) -> tuple[int, int]:
    return partitions.agents, partitions.sessions


def states_of(worker: object) -> dict[str, object]:
    shards = worker.shards  # type: ignore[attr-defined]
    return {f"{name}/{part}": shard.view.state for (name, part), shard in shards.items() if shard.view.position}


async def states_in(log: JetStreamLog) -> dict[str, object]:
    replay = Replay(EVERY, log.partitions)
    await run_replay(StreamSource(log), replay, progress=lambda _: None)
    return {f"{name}/{part}": view.state for (name, part), view in replay.views.items() if view.position}


def test_a_log_in_which_something_is_under_way_is_refused_until_it_has_ended(broker: Broker) -> None:
    async def body(log: JetStreamLog) -> None:
        async with living(broker, "before") as worker:
            await converse(log, 1, 1)
            await worker.stopped()
        await asked(log, [(number, 5, "Hello there") for number in range(2)], awaited=False)
        with pytest.raises(Misconfigured, match="2 exchanges of the log have no end yet: start the workers"):
            await divided(broker)
        async with living(broker, "again") as worker:
            await at_rest(log)
            await worker.stopped()
        await divided(broker)

    on_broker(broker, body)


def unread(subject: str, id: str, data: bytes | None = None) -> Append:
    """An input as a careless publisher stores it."""
    record = said("Hello there", id=id, session="session-1")
    return Append([msgspec.structs.replace(record, subject=subject, data=record.data if data is None else data)])


async def store_what_nobody_reads(log: JetStreamLog) -> None:
    """Store inputs in partitions that the log does not have, and one on a misspelt subject."""
    for number, where in enumerate(("77.88.input.received", "xx.yy.input.received", "00.01.input.recieved")):
        await log.append([unread(f"log.{where}", f"stray-{number}")])


def test_inputs_that_nobody_can_read_keep_no_log_from_being_divided(broker: Broker) -> None:
    """They never end, however long one waits."""

    async def body(log: JetStreamLog) -> None:
        async with living(broker, "before") as worker:
            await converse(log, 1, 1)
            own = log.partitions
            subject = f"log.{own.agent_token('agent-1')}.{own.session_token('session-1')}.input.received"
            await log.append([unread(subject, "unreadable", b"{")])
            await at_rest(log)
            await worker.stopped()
        await store_what_nobody_reads(log)
        assert (await divided(broker)).after.sessions == AFTER[1]

    on_broker(broker, body)


def test_a_gateway_that_has_not_heard_of_it_is_answered_and_a_log_is_divided_again(broker: Broker) -> None:
    async def body(log: JetStreamLog) -> None:
        async with living(broker, "before") as worker:
            await converse(log, 2, 1)
            await at_rest(log)
            await worker.stopped()
        await divided(broker)
        async with living(broker, "after", partitions=Partitions(*AFTER)) as worker:
            await asked(log, [(number, 7, "What is the capital of Peru?") for number in range(SESSIONS)])
            assert await promises_broken(broker) == []
            await worker.stopped()
        again = await divided(broker, 3 * AFTER[0], AFTER[1])
        assert [each.agents for each in again.after.former] == [PARTITIONS.agents, AFTER[0]]
        last = await opened(broker)
        async with living(broker, "last", partitions=Partitions(3 * AFTER[0], AFTER[1])):
            await asked(last, [(number, 11, "thanks!") for number in range(2)])
            assert await promises_broken(broker) == []
        await last.close()

    on_broker(broker, body)


def test_an_owner_of_before_that_wakes_afterwards_appends_nothing_and_ends(broker: Broker) -> None:
    async def body(log: JetStreamLog) -> None:
        async with living(broker, "paused", membership=OnlyMe()) as paused:
            await converse(log, 2, 1)
            await at_rest(log)
            done = await divided(broker)
            after = await opened(broker)
            async with living(broker, "after", partitions=Partitions(*AFTER)):
                await asked(log, [(number, 3, "Hello there") for number in range(2)])
                ended = await paused.ended()
                assert await promises_broken(broker) == []
            assert "repartitioned" in repr(ended)
            late = [each for each in await collect(after) if each.seq > done.through and is_decided(each)]
            assert late
            assert not [each.subject for each in late if not split_stored(each.subject)[2].startswith(("1-", "_"))]
            await after.close()

    on_broker(broker, body)


def is_decided(stored: Stored) -> bool:
    topic = split_stored(stored.subject)[0].split(".")[1]
    return topic in ACTORS


@pytest.mark.parametrize("moved", [False, True], ids=["closed", "fences moved"])
def test_one_that_was_killed_goes_on_or_is_given_up(broker: Broker, moved: bool) -> None:
    async def body(log: JetStreamLog) -> None:
        async with living(broker, "before") as worker:
            await converse(log, 2, 1)
            await at_rest(log)
            await worker.stopped()
        stored = await collect(log)
        await _close(log.connection, log.stream, "4:12")
        if moved:
            folding = Replay(EVERY, PARTITIONS)
            await run_replay(StreamSource(log), folding, progress=lambda _: None)
            await _move_fences(log, folding)
        with pytest.raises(Misconfigured, match="run `neuraxis log repartition --agents 4 --sessions 12` again"):
            await opened(broker)
        assert (await collect(log))[: len(stored)] == stored
        access, settings = Access(servers=broker.url), CONFIG
        assert await cancel(access, settings)
        assert not await cancel(access, settings)
        async with living(broker, "again") as worker:
            await asked(log, [(0, 5, "Hello there")])
            await at_rest(log)
            await worker.stopped()
        await _close(log.connection, log.stream, "4:12")
        await divided(broker)
        after = await opened(broker)
        async with living(broker, "after", partitions=Partitions(*AFTER)):
            await asked(after, [(0, 6, "thanks!")])
            assert await promises_broken(broker) == []
        await after.close()

    on_broker(broker, body)


def test_a_log_that_no_worker_has_run_on_is_divided(broker: Broker) -> None:
    async def body(log: JetStreamLog) -> None:
        done = await divided(broker)
        after = await opened(broker)
        assert (after.partitions, done.after) == (done.after, Partitions(*AFTER, done.after.former))
        await after.close()

    on_broker(broker, body)


def test_nonsense_and_running_workers_are_refused_and_nothing_changes(broker: Broker) -> None:
    async def body(log: JetStreamLog) -> None:
        before = (await log.connection.api(f"STREAM.INFO.{log.stream}"))["config"]
        for agents, sessions, why in (
            (2, 4, "already"),
            (2, 6, "no multiple"),
            (1, 4, "never joined"),
            (5, 8, "no multiple"),
        ):
            with pytest.raises(Misconfigured, match=why):
                await divided(broker, agents, sessions)
        async with living(broker, "running") as worker:
            await converse(log, 1, 1)
            with pytest.raises(Misconfigured, match="1 worker runs on stream NEURAXIS: stop them all"):
                await divided(broker)
            await worker.stopped()
        assert (await log.connection.api(f"STREAM.INFO.{log.stream}"))["config"] == before

    on_broker(broker, body)
