"""A stretch of the log with gaps: read once for all partitions of a process that fold it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

import pytest

from actors.registry import ACTORS
from actors.runtime.gap_reader import SharedReader
from events.errors import Unavailable
from events.jetstream import JetStreamLog
from events.jetstream.reading.stream_reader import StreamReader
from events.log import Stored
from events.loss_recording import loss_of_gap, record_losses
from schemas.actor import Actor
from schemas.vocabulary.responder import ResponseEmitted
from tests.actors.runtime.living import (
    PARTITIONS,
    all_partitions,
    at_rest,
    converse,
    led_by,
    living,
    log_test,
    on_broker,
)
from tests.actors.runtime.partition.test_rotten_messages import ends_of, twice
from tests.broker import Broker
from tests.events.log.test_unreadable_messages import PASSED
from tests.events.setting import Setting, back, collect, plain, record
from tests.faults.cuts import flip_bit_of
from tests.simulated.log import SimulatedLog

SUBJECTS = (
    "log.00.03.input.received",
    "log.00.02.input.received",
    "log.00.03.reflex.passed",
    "log.01.03.input.received",
    "log.00._.regulator.adjusted",
)
REFLEX, ROUTER, CLOCK = ACTORS["reflex"], ACTORS["router"], ACTORS["clock"]


class Counted(SimulatedLog):
    """A log of one message a subject that counts its readings."""

    def __init__(self, fails: int = 0) -> None:
        self.readings: list[tuple[int, int]] = []
        self.begun = asyncio.Event()
        self._fails = fails

    @property
    def partitions(self):  # type: ignore[no-untyped-def]
        return PARTITIONS

    async def history(self, filters: Sequence[str], after: int, upto: int) -> AsyncIterator[Sequence[Stored]]:
        self.readings.append((after, upto))
        self.begun.set()
        for seq, subject in enumerate(SUBJECTS, 1):
            if after < seq <= upto:
                yield [Stored(seq, seq, subject, {}, b"{}")]
            await asyncio.sleep(0)
            if self._fails and seq == 2:
                self._fails -= 1
                raise Unavailable("away")


Found = list[tuple[int, bool]]


async def _read(shared: SharedReader, actor: Actor[object], partition: str, after: int = 0, upto: int = 5) -> Found:
    found: Found = []
    await shared.read(actor, partition, after, upto, lambda delivery, own: found.append((delivery.stored.seq, own)))
    return found


def shared(body: Callable[[SharedReader], Awaitable[object]], log: Counted) -> None:
    async def main() -> None:
        async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
            await body(SharedReader(log, tuple(ACTORS.values()), tasks))

    asyncio.run(main())


def test_who_asks_at_the_same_time_is_served_by_one_reading_each_with_what_is_its_own() -> None:
    log = Counted()

    async def body(shared: SharedReader) -> None:
        found = await asyncio.gather(
            _read(shared, REFLEX, "03"), _read(shared, REFLEX, "03", 1, 3), _read(shared, ROUTER, "02", 1)
        )
        assert found == [[(1, False), (3, True), (4, False)], [(3, True)], [(2, False), (5, False)]]

    shared(body, log)
    assert log.readings == [(0, 5)]


def test_who_comes_while_it_reads_is_served_by_the_next_reading() -> None:
    log = Counted()

    async def body(shared: SharedReader) -> None:
        first = asyncio.create_task(_read(shared, REFLEX, "03"))
        await log.begun.wait()
        assert await _read(shared, REFLEX, "03", 1) == [(3, True), (4, False)]
        assert first.done()

    shared(body, log)
    assert log.readings == [(0, 5), (1, 5)]


def test_what_lies_between_two_stretches_is_not_read() -> None:
    log = Counted()

    async def body(shared: SharedReader) -> None:
        found = await asyncio.gather(
            _read(shared, REFLEX, "03", 3, 5), _read(shared, REFLEX, "03", 0, 1), _read(shared, REFLEX, "03", 4, 5)
        )
        assert found == [[(4, False)], [(1, False)], []]

    shared(body, log)
    assert log.readings == [(0, 1), (3, 5)]


def test_a_partition_that_is_given_up_harms_no_other() -> None:
    log = Counted()

    async def body(shared: SharedReader) -> None:
        first, second = (asyncio.create_task(_read(shared, REFLEX, "03")) for _ in range(2))
        await log.begun.wait()
        first.cancel()
        assert len(await second) == 3
        assert first.cancelled()

    shared(body, log)


def test_a_log_that_goes_away_is_told_to_all_and_read_from_the_beginning_by_who_asks_again() -> None:
    log = Counted(fails=1)

    async def body(shared: SharedReader) -> None:
        found = await asyncio.gather(*(_read(shared, REFLEX, "03") for _ in range(2)), return_exceptions=True)
        assert [type(each) for each in found] == [Unavailable, Unavailable]
        assert len(await _read(shared, REFLEX, "03")) == 3

    shared(body, log)


def test_a_fold_that_cannot_go_on_is_told_to_who_asked_for_it_alone() -> None:
    async def body(shared: SharedReader) -> None:
        def refuse(*_: object) -> None:
            raise ValueError("not this one")

        refused = asyncio.create_task(shared.read(REFLEX, "03", 0, 5, refuse))
        assert len(await _read(shared, REFLEX, "03")) == 3
        with pytest.raises(ValueError, match="not this one"):
            await refused

    shared(body, Counted())


GAPS = 10


def test_many_gaps_cost_a_start_no_reading_a_gap_and_partition(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reading of several filters begins anew behind each gap; with dozens of gaps a set was not ready for minutes."""
    made = 0
    create = StreamReader._create

    async def counted(reading: StreamReader) -> int:
        nonlocal made
        made += 1
        return await create(reading)

    async def body(log: JetStreamLog) -> None:
        nonlocal made
        async with living(broker, "a"):
            await converse(log, 3, 3)
            await at_rest(log)
        rotten = [stored.seq for stored in (await collect(log))[-12 * GAPS :: 12]]
        broker.stop()
        for seq in rotten:
            flip_bit_of(broker.store, seq)
        broker.start()
        await back(Setting(log, broker.kill, broker.start))
        losses = [loss_of_gap(seq, seq) for seq in rotten]
        await record_losses(log, losses, "test", "2026-01-01T00:00:00Z", "")
        monkeypatch.setattr(StreamReader, "_create", counted)
        async with living(broker, "b") as worker:
            await led_by(worker)
            assert made < 2 * len(all_partitions())
            await converse(log, 3, 1, first=10)
            await at_rest(log)
        messages = await collect(log)
        assert twice(messages) == []
        assert set(ends_of(messages, ResponseEmitted).values()) == {1}

    on_broker(broker, body)


@log_test
async def test_losses_that_are_found_together_are_recorded_together_and_once(log: JetStreamLog) -> None:
    """Whoever reads of a loss begins anew: once, and not once for each."""
    await log.append([plain(record(PASSED, b"x")) for _ in range(8)])
    losses = [loss_of_gap(seq, seq) for seq in (3, 5, 7)]
    await record_losses(log, losses[:1], "test", "2026-01-01T00:00:00Z", "")
    for _ in range(2):
        await record_losses(log, losses, "test", "2026-01-01T00:00:00Z", "")
    found = (await log.losses()).found
    assert [loss.event.first_seq for loss in found] == [3, 5, 7]
    assert found[2].seq == found[1].seq + 1
