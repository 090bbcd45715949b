"""Workers on a log that lost its tail: no partition stands still, whatever was ahead of it."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from events.decoding import Recorded, decode
from events.errors import LogCut
from events.jetstream import JetStreamLog
from events.log import Stored
from tests.actors.runtime.living import all_partitions, at_rest, broken, converse, living, log_test, on_broker
from tests.actors.runtime.waiting import until
from tests.asynchronous import run_by
from tests.broker import Broker
from tests.events.setting import Setting, back, collect
from tests.faults.cuts import cut_after, cut_tail, drop_index, flip_bit

SESSIONS = 6


def _cut(store: Path) -> None:
    cut_tail(store, 20_000)


def _cut_without_index(store: Path) -> None:
    cut_tail(store, 20_000)
    drop_index(store)


def _last_message_rots(store: Path) -> None:
    flip_bit(store, 0.9999)


def _a_late_message_rots(store: Path) -> None:
    flip_bit(store, 0.99)


@pytest.fixture(scope="module")
def left_behind(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of a broker after some conversations, of which a worker that stopped has snapshots."""

    async def body(log: JetStreamLog) -> None:
        async with living(broker, "a", snapshot_every=20) as worker:
            await converse(log, SESSIONS, 3)
            await at_rest(log)
            await worker.stopped()

    with Broker(tmp_path_factory.mktemp("before") / "broker") as broker:
        on_broker(broker, body)
        broker.stop()
    return broker.store


@pytest.fixture
def talked(left_behind: Path, tmp_path: Path) -> Iterator[Broker]:
    """A broker with a copy of that store."""
    talked = Broker(tmp_path / "talked")
    shutil.copytree(left_behind, talked.store)
    with talked:
        yield talked


talked_log_test = run_by(on_broker, "log", "talked")


@pytest.mark.parametrize("harm", [_cut, _cut_without_index, _last_message_rots, _a_late_message_rots])
@talked_log_test
async def test_new_inputs_are_answered_on_what_is_left(
    log: JetStreamLog, harm: Callable[[Path], None], talked: Broker
) -> None:
    """Snapshots stand beyond the end; the fences of some partitions name messages that are gone."""
    talked.stop()
    harm(talked.store)
    talked.start()
    await back(Setting(log, talked.kill, talked.start))
    async with living(talked, "b") as worker:
        ends = await converse(log, SESSIONS, 4, first=10)
        assert "FAILED" not in {end.event.action for end in ends}
        await at_rest(log)
        assert worker.leads() == all_partitions()


@log_test
async def test_a_worker_whose_broker_comes_back_with_less_ends_and_the_next_one_keeps_all_promises(
    log: JetStreamLog, broker: Broker
) -> None:
    async with living(broker, "a", snapshot_every=20) as worker:
        await converse(log, SESSIONS, 3)
        await at_rest(log)
        broker.kill()
        _cut_without_index(broker.store)
        broker.start()
        ended = await worker.ended()
    assert isinstance(ended, BaseExceptionGroup)
    assert ended.subgroup(LogCut) is not None
    await back(Setting(log, broker.kill, broker.start))
    async with living(broker, "b"):
        ends = await converse(log, SESSIONS, 4, first=10)
        assert await broken(log, ends) == []


@log_test
async def test_a_partition_notices_that_what_it_wrote_is_gone_though_nothing_asks_it_to_write(
    log: JetStreamLog, broker: Broker
) -> None:
    async with living(broker, "a") as worker:
        await converse(log, SESSIONS, 2)
        await at_rest(log)
        shard = max(worker.worker.shards.values(), key=lambda shard: shard.view.own_last)
        shard.view.acknowledge(["forged_id.any"], shard.view.own_last + 1_000, "gone")
        shard.view.fenced = shard.view.own_last
        before = worker.worker.counters.recoveries
        await worker.worker.check_own()
        await until(lambda: worker.worker.counters.recoveries == before + 1, "the partition to begin anew")
        ends = await converse(log, SESSIONS, 2, first=10)
        assert await broken(log, ends) == []


@talked_log_test
async def test_half_a_decision_at_the_end_of_the_log_is_completed(log: JetStreamLog, talked: Broker) -> None:
    """Made again it has the same events, so that the rest of it is appended and nothing differs."""
    seen = await collect(log)
    half = next(stored for stored in reversed(seen) if _is_first_of_many(stored))
    talked.stop()
    cut_after(talked.store, half.seq)
    drop_index(talked.store)
    talked.start()
    await back(Setting(log, talked.kill, talked.start))
    assert (await log.info()).last_seq == half.seq
    async with living(talked, "b"):
        ends = await converse(log, SESSIONS, 2, first=10)
        assert await broken(log, ends) == []
    assert _decision_of(half, await collect(log)) == _decision_of(half, seen)


def _decision_of(half: Stored, messages: list[Stored]) -> list[tuple[str, str]]:
    """Return the ids and the places of the events of one decision."""
    owner = half.headers["ce-type"].split(".")[1]
    return [
        (stored.headers["ce-id"], stored.headers["ce-index"])
        for stored in messages
        if stored.headers.get("ce-cause") == half.headers["ce-cause"]
        and stored.headers["ce-type"].split(".")[1] == owner
    ]


def _is_first_of_many(stored: Stored) -> bool:
    recorded = decode(stored)
    return isinstance(recorded, Recorded) and recorded.envelope.index == 0 and recorded.envelope.count > 1


@talked_log_test
async def test_a_log_whose_first_messages_are_all_lost_is_gone_on_with(log: JetStreamLog, talked: Broker) -> None:
    talked.stop()
    cut_tail(talked.store, 10**9)
    drop_index(talked.store)
    talked.start()
    await back(Setting(log, talked.kill, talked.start))
    async with living(talked, "b"):
        ends = await converse(log, SESSIONS, 2, first=10)
        assert await broken(log, ends) == []
