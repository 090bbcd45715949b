"""Workers of all actors on a real broker: taking turns, taking over, surviving what happens to broker and messages."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

import msgspec
import pytest
from nats.aio.msg import Msg
from structlog.testing import capture_logs

from actors.gateway import Client, new_input
from actors.registry import ACTORS
from actors.runtime.context import Role
from actors.runtime.partition import shard
from actors.runtime.partition.shard import Shard
from events.decoding import Recorded, decode
from events.errors import Misconfigured
from events.jetstream import JetStreamLog
from events.log import Append, Record
from schemas.event import Failed
from schemas.intake.limits import InputLimits
from schemas.persistent import state_hash
from schemas.vocabulary.gateway import Layer
from schemas.vocabulary.responder import ResponseEmitted
from tests.actors.runtime.living import (
    PARTITIONS,
    OnlyMe,
    all_partitions,
    at_rest,
    broken,
    content,
    converse,
    led_by,
    living,
    log_test,
    on_broker,
)
from tests.actors.runtime.waiting import DEADLINE_S, until
from tests.broker import Broker
from tests.events.setting import collect
from tests.judging import replayed

SESSIONS, TURNS = 8, 4


@log_test
async def test_every_input_gets_one_end_and_the_log_keeps_all_promises(log: JetStreamLog, broker: Broker) -> None:
    async with living(broker, "a") as worker:
        ends = await converse(log, SESSIONS, TURNS)
        await at_rest(log)
        await worker.stopped()
    assert len(ends) == SESSIONS * TURNS
    assert {end.event.action for end in ends} >= {"EXECUTED", "BLOCKED"}
    assert await broken(log, ends) == []


def run_of(broker: Broker, workers: Callable[[JetStreamLog], Awaitable[None]]) -> dict[str, object]:
    """Return the content of the log after a run."""
    seen: dict[str, object] = {}

    async def body(log: JetStreamLog) -> None:
        await workers(log)
        seen.update(content(await collect(log)))

    on_broker(broker, body)
    return seen


def test_two_workers_share_the_partitions_and_write_what_one_would(broker: Broker, tmp_path: Path) -> None:
    async def alone(log: JetStreamLog) -> None:
        async with living(broker, "a"):
            await converse(log, SESSIONS, TURNS)
            await at_rest(log)

    async def together(log: JetStreamLog) -> None:
        async with living(other, "a") as first, living(other, "b") as second:
            await led_by(first, second)
            assert first.leads()
            assert second.leads()
            ends = await converse(log, SESSIONS, TURNS)
            await at_rest(log)
            assert await broken(log, ends) == []

    expected = run_of(broker, alone)
    with Broker(tmp_path / "other") as other:
        assert run_of(other, together) == expected
    assert len(expected) == SESSIONS * TURNS


def test_two_workers_that_both_take_everything_to_be_theirs_are_harmless(broker: Broker, tmp_path: Path) -> None:
    async def alone(log: JetStreamLog) -> None:
        async with living(broker, "a"):
            await converse(log, SESSIONS, TURNS)
            await at_rest(log)

    async def against_each_other(log: JetStreamLog) -> None:
        async with living(other, "a", membership=OnlyMe()) as first, living(other, "b", membership=OnlyMe()) as second:
            for worker in (first, second):
                await until(lambda worker=worker: worker.leads() == all_partitions(), "a worker to lead everything")
            ends = await converse(log, SESSIONS, TURNS)
            await at_rest(log)
            assert await broken(log, ends) == []
            assert first.worker.counters.conflicts + second.worker.counters.conflicts > 0

    expected = run_of(broker, alone)
    with Broker(tmp_path / "other") as other:
        assert run_of(other, against_each_other) == expected


@pytest.mark.parametrize(("how", "standby"), [("stopped", True), ("killed", True), ("killed", False)])
@log_test
async def test_the_other_worker_takes_over_every_partition(
    log: JetStreamLog, broker: Broker, how: str, standby: bool
) -> None:
    async with (
        living(broker, "a", standby=standby) as first,
        living(broker, "b", standby=standby) as second,
    ):
        await led_by(first, second)
        before = await converse(log, SESSIONS, 2)
        await getattr(first, how)()
        await led_by(second)
        after = await converse(log, SESSIONS, 2, first=2)
        assert await broken(log, before + after) == []


@log_test
async def test_a_worker_ended_in_the_middle_of_a_load_leaves_no_exchange_open(
    log: JetStreamLog, broker: Broker
) -> None:
    async with living(broker, "a") as first, living(broker, "b") as second:
        await led_by(first, second)
        talking = asyncio.create_task(converse(log, SESSIONS, 12))
        await until(lambda: first.worker.counters.emitted > 40, "work under way")
        await first.killed()
        ends = await talking
        await led_by(second)
        assert await broken(log, ends) == []


@log_test
async def test_a_broker_crash_in_the_middle_of_a_load_leaves_no_exchange_open(
    log: JetStreamLog, broker: Broker
) -> None:
    async with living(broker, "a") as first, living(broker, "b") as second:
        await led_by(first, second)

        def emitted() -> int:
            return first.worker.counters.emitted + second.worker.counters.emitted

        settings = emitted()  # one event a partition
        talking = asyncio.create_task(converse(log, SESSIONS, 12))
        for more in (40, 120):
            await until(lambda least=settings + more: emitted() > least, "work under way")
            broker.kill()
            broker.start()
        ends = await talking
        assert len(ends) == SESSIONS * 12
        assert await broken(log, ends) == []


@log_test
async def test_a_copy_of_the_answer_reaches_the_inbox_that_the_input_names(log: JetStreamLog, broker: Broker) -> None:
    copies: asyncio.Queue[tuple[str, bytes]] = asyncio.Queue()

    async def take(msg: Msg) -> None:
        copies.put_nowait(((msg.headers or {})["ce-type"], msg.data))

    await log.connection.nc.subscribe("_INBOX.test.answers", cb=take)
    async with living(broker, "a"), Client.open(log) as edge:
        addressed = new_input(
            "Hello", agent="ann", session="s", partitions=PARTITIONS, now_ns=1, reply_to="_INBOX.test.answers"
        )
        await edge.submit(addressed)
        end = await edge.await_end(addressed.exchange, DEADLINE_S)
        async with asyncio.timeout(DEADLINE_S):
            topic, data = await copies.get()
    assert topic == "forged_id.response.emitted"
    assert msgspec.json.decode(data, type=ResponseEmitted) == end.event
    assert copies.empty()


@log_test
async def test_recovery_starts_from_a_snapshot_and_ends_in_the_same_state(log: JetStreamLog, broker: Broker) -> None:
    async with living(broker, "a", snapshot_every=5) as worker:
        before = await converse(log, SESSIONS, TURNS)
        await until(lambda: worker.worker.counters.snapshots > 0, "a snapshot")
        # Killed, so that what is behind the last snapshots has to be read again.
        await worker.killed()
    async with living(broker, "b", snapshot_every=5) as worker:
        await led_by(worker)
        assert worker.worker.counters.snapshots_used > 0
        after = await converse(log, SESSIONS, 2, first=TURNS)
        await rest(log, tuple(worker.worker.shards.values()))
        replay, report = replayed(tuple(ACTORS.values()), await collect(log), PARTITIONS)
        assert report.clean
        for key, shard in worker.worker.shards.items():
            if key in replay.views:
                assert state_hash(shard.view.state) == state_hash(replay.views[key].state), key
    assert await broken(log, before + after) == []


async def rest(log: JetStreamLog, shards: Iterable[Shard]) -> None:
    """Wait until every shard has folded all of its partition that is in the log."""
    messages = await collect(log)
    views = replayed(tuple(ACTORS.values()), messages, PARTITIONS)[0].views

    def there() -> bool:
        return all(
            (shard.actor.name, shard.partition) not in views
            or shard.view.position >= views[shard.actor.name, shard.partition].position
            for shard in shards
        )

    await until(there, "every shard to be up to date")


@log_test
async def test_a_stopped_worker_leaves_snapshots_that_spare_the_next_all_reading(
    log: JetStreamLog, broker: Broker
) -> None:
    async with living(broker, "a") as worker:
        await converse(log, SESSIONS, TURNS)
        await at_rest(log)
        await rest(log, worker.worker.shards.values())
        await worker.stopped()
        assert worker.worker.counters.snapshots > 0
    last = (await log.info()).last_seq
    async with living(broker, "b") as worker:
        await led_by(worker)
        shards = [shard for shard in worker.worker.shards.values() if shard.view.own_last]
        assert worker.worker.counters.snapshots_used >= len(shards) > 0
        assert worker.worker.counters.decided == 0
    # The settings are recorded already: a start that changes nothing writes nothing.
    assert (await log.info()).last_seq == last


# --- what cannot be decided


def altered(record: Record, *, data: bytes | None = None, **headers: str) -> Record:
    changed = {**record.headers, **{name.replace("_", "-"): value for name, value in headers.items()}}
    return msgspec.structs.replace(record, data=record.data if data is None else data, headers=changed)


def an_input(exchange: str = "") -> Record:
    return new_input("Hello", agent="ann", session="s", partitions=PARTITIONS, now_ns=1, exchange=exchange).record


EXCHANGE = "e" * 31
POISONS: dict[str, tuple[Callable[[str], Record], str]] = {
    "half a body": (lambda id: altered(an_input(id), data=b'{"topic"'), "undecodable"),
    "wrong type": (
        lambda id: altered(an_input(id), data=b'{"topic":"forged_id.input.received","text":7}'),
        "undecodable",
    ),
    "deep nesting": (lambda id: altered(an_input(id), data=b"[" * 100_000), "undecodable"),
    "no text": (lambda id: altered(an_input(id), data=b"\xff\xfe"), "undecodable"),
    "from the future": (lambda id: altered(an_input(id), ce_dataversion="2"), "unknown_version"),
    "from before the first": (lambda id: altered(an_input(id), ce_dataversion="0"), "unknown_version"),
    "no version": (lambda id: altered(an_input(id), ce_dataversion="one"), "undecodable"),
    "on the subject of another": (lambda id: altered(an_input(id), ce_type="forged_id.reflex.passed"), "undecodable"),
    "unknown topic": (lambda id: altered(an_input(id), ce_type="forged_id.nowhere.known"), "undecodable"),
    "no envelope": (lambda id: Record(an_input().subject, {}, b"{}"), "undecodable"),
}
"""Name -> a record of an input that nobody can read, and the reason of those who fail at it."""


def test_messages_that_cannot_be_read_are_failed_by_all_who_consume_them_and_they_go_on(broker: Broker) -> None:
    owners = {"clock", "reflex", "responder", "router"}

    async def body(log: JetStreamLog) -> None:
        named: dict[int, str] = {}
        with capture_logs() as lines:
            async with living(broker, "a"):
                for number, (name, (poison, _)) in enumerate(POISONS.items()):
                    named[await log.as_stored().append([Append([poison(f"{EXCHANGE}{number}")])])] = name
                ends = await converse(log, SESSIONS, 1)
                failures = await failures_of(log, owners, len(POISONS))
        assert len(ends) == SESSIONS
        found = Counter((named[failure.failed_seq], failure.reason, failure.error) for failure in failures)
        assert found == {(name, reason, ""): len(owners) for name, (_, reason) in POISONS.items()}
        assert {failure.failed_topic for failure in failures} == {"forged_id.input.received"}
        why = [line["error"] for line in lines if line["event"] == "decision_failed"]
        assert len(why) >= len(failures)
        assert all(0 < len(each) <= 300 for each in why), "the event has no words for it, the log line has"

    on_broker(broker, body)


async def failures_of(log: JetStreamLog, owners: set[str], messages: int = 1) -> list[Failed]:
    """Wait until each of these actors has failed at so many messages; returns one each, and fails when one has two."""
    prefixes = {"responder": "response"}
    filters = [f"log.*.*.{prefixes.get(owner, owner)}.failed" for owner in sorted(owners)]

    async def there() -> bool:
        return len(await collect(log, filters=filters)) >= messages * len(owners)

    await until(there, f"failures of {sorted(owners)}")
    found: dict[tuple[str, int], Failed] = {}
    for stored in await collect(log, filters=filters):
        recorded = decode(stored)
        assert isinstance(recorded, Recorded)
        assert isinstance(recorded.message.event, Failed)
        place = (recorded.envelope.topic, recorded.message.event.failed_seq)
        assert place not in found
        found[place] = recorded.message.event
    return list(found.values())


def test_an_own_event_that_this_release_does_not_know_ends_the_worker_with_the_reason(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shard, "NEWER_S", 0.5)

    async def body(log: JetStreamLog) -> None:
        subject = an_input().subject.replace("input.received", "reflex.invented")
        strange = altered(msgspec.structs.replace(an_input(), subject=subject), ce_type="forged_id.reflex.invented")
        await log.append([Append([strange])])
        async with living(broker, "a") as worker:
            ended = await worker.ended()
        assert isinstance(ended, BaseExceptionGroup)
        assert isinstance(ended.exceptions[0], Misconfigured)
        assert "written by a newer release" in str(ended.exceptions[0])

    on_broker(broker, body)


def test_an_event_too_large_for_the_broker_becomes_a_failure_and_the_exchange_ends(tmp_path: Path) -> None:
    # What appraisal records of a layer is longer than these layers, sealed: this broker's limit lies between the sums.
    with Broker(tmp_path / "narrow", max_payload=84_000) as broker:

        async def body(log: JetStreamLog) -> None:
            async with living(broker, "a") as worker, Client.open(log) as edge:
                addressed = new_input(
                    "Hello",
                    layers=(Layer(role="document", content="x"),) * 1_000,
                    agent="ann",
                    session="s",
                    partitions=PARTITIONS,
                    now_ns=1,
                    limits=InputLimits(layers=1_000),
                )
                await edge.submit(addressed)
                end = await edge.await_end(addressed.exchange, DEADLINE_S)
                assert (end.event.action, end.event.reason) == ("FAILED", "appraisal_failed")
                failures = await failures_of(log, {"appraisal"})
                assert {failure.reason for failure in failures} == {"append_refused"}
                assert worker.worker.counters.failed == 1

        on_broker(broker, body)


@log_test
async def test_a_worker_is_ready_once_none_of_its_partitions_recovers(log: JetStreamLog, broker: Broker) -> None:
    async with living(broker, "a") as worker, asyncio.timeout(DEADLINE_S):
        await worker.worker.ready.wait()
        assert {shard.role for shard in worker.worker.shards.values()} == {Role.LEADING}
        assert set(worker.worker.shards) == all_partitions()


@log_test
async def test_settings_are_recorded_once_in_every_partition(log: JetStreamLog, broker: Broker) -> None:
    for name in ("a", "b"):
        async with living(broker, name) as worker:
            await led_by(worker)
            await worker.stopped()
    recorded = Counter(
        (stored.headers["ce-type"], stored.subject)
        for stored in await collect(log)
        if stored.headers["ce-type"].endswith(".configured")
    )
    assert len(recorded) == len(all_partitions())
    assert set(recorded.values()) == {1}
