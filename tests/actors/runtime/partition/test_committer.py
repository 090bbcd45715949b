"""The committer: singly while little waits, together once much does, and nobody suffers for another's conflict."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence

import pytest
from structlog.testing import capture_logs

from actors.runtime.committer import BATCH_FROM, SINGLES, Committer, Group
from events.errors import Misconfigured
from events.log import MAX_BATCH, MAX_RECORD_BYTES, Append, Fence, Record
from events.make_decision import NewEvent
from schemas.actor import Message
from schemas.event import Event
from schemas.vocabulary.reflex import ReflexFailed, ReflexPassed
from tests.each import each
from tests.events.simulated_world import data_of, in_world, log_of
from tests.simulated import CALM, Faults, SimulatedLog, SimulatedStream

PASSED = ReflexPassed()
FAILED = ReflexFailed(reason="append_refused", error="", failed_seq=1, failed_topic="forged_id.input.received")


class Partition:
    """A writer whose decisions are made, and what it was told of them."""

    def __init__(self, number: int, last: int = 0) -> None:
        self.number = number
        self.outbox: deque[Group] = deque()
        self.epoch = 0
        self.last = last
        self.lost_for: list[str] = []
        self.refusals: list[Group] = []
        self._decided = 0

    def put(self, *sizes: int, event: Event = PASSED, data: bytes = b"") -> "Partition":
        """Put decisions of so many events each into the outbox."""
        for size in sizes:
            messages = [self._one(event, data) for _ in range(size)]
            self.outbox.append(Group(tuple(one for one, _ in messages), tuple(record for _, record in messages)))
        return self

    def _one(self, event: Event, data: bytes) -> tuple[NewEvent, Record]:
        self._decided += 1
        name = f"{self.number}-{self._decided}"
        subject = f"log.00.{self.number:02d}.reflex.passed"
        decided = NewEvent(Message(event, 1, name, 0), "forged_id.reflex.passed", subject, b"", "", 1, 0, 1)
        return decided, Record(subject, {"Nats-Msg-Id": name}, data or name.encode())

    def fence(self) -> Fence:
        return Fence(f"log.*.{self.number:02d}.reflex.>", self.last)

    def committed(self, groups: Sequence[Group], last_seq: int) -> None:
        for group in groups:
            assert self.outbox.popleft() is group
        self.last = last_seq

    def reset(self, reason: str, last: int | None = None) -> None:
        self.lost_for.append(reason)
        self.forget()

    def refused(self, group: Group) -> None:
        self.refusals.append(group)
        self.forget()

    def forget(self) -> None:
        self.epoch += 1
        self.outbox.clear()


def drain(
    *partitions: Partition, faults: Faults = CALM, before: Callable[[SimulatedLog], Awaitable[None]] | None = None
) -> tuple[Committer, list[bytes]]:
    """Let a committer drain the outboxes of partitions; return it, and the data that is stored, in order."""
    committers: list[Committer] = []

    async def body(stream: SimulatedStream) -> None:
        log = log_of(stream)
        if before is not None:
            await before(log)
        async with asyncio.TaskGroup() as tasks:
            committer = Committer(log, tasks)
            committers.append(committer)
            running = tasks.create_task(committer.run())
            for partition in partitions:
                committer.submit(partition)
            await committer.drained()
            running.cancel()

    stream = in_world(body, faults)
    return committers[0], data_of(stream)


def names(number: int, count: int) -> list[bytes]:
    return [b"%d-%d" % (number, place) for place in range(1, count + 1)]


def of(number: int, stored: Sequence[bytes]) -> list[bytes]:
    return [data for data in stored if data.startswith(b"%d-" % number)]


def test_what_little_waits_is_appended_singly() -> None:
    committer, stored = drain(*(Partition(number).put(1) for number in range(SINGLES + 4)))
    assert committer.batches == 0
    assert committer.appended == len(stored) == SINGLES + 4


def test_a_backlog_is_appended_as_one_batch() -> None:
    committer, stored = drain(*(Partition(number).put(*[1] * 10) for number in range(BATCH_FROM // 10 + 1)))
    assert committer.batches == 1
    assert len(stored) == committer.appended >= BATCH_FROM


@each("count", [1, 10, 30])
def test_the_decisions_of_a_partition_keep_their_order(count: int) -> None:
    partitions = [Partition(number).put(*[1] * count) for number in range(5)]
    _, stored = drain(*partitions)
    for partition in partitions:
        assert of(partition.number, stored) == names(partition.number, count)
        assert not partition.outbox


def test_the_fence_moves_with_what_is_stored() -> None:
    partition = Partition(0).put(1, 1, 1)
    _, stored = drain(partition)
    assert partition.last == len(stored) == 3


def test_the_events_of_one_decision_are_stored_side_by_side() -> None:
    committer, stored = drain(Partition(0).put(1, 3, 1), Partition(1).put(1, 1))
    assert committer.batches > 0
    start = stored.index(b"0-2")
    assert stored[start : start + 3] == [b"0-2", b"0-3", b"0-4"]


def test_more_than_a_batch_holds_becomes_several() -> None:
    committer, stored = drain(*(Partition(number).put(*[7] * 50) for number in range(4)))
    assert len(stored) == 4 * 7 * 50 > MAX_BATCH
    assert committer.batches == 2


def test_a_conflict_in_a_batch_is_the_loss_of_the_one_whose_fence_does_not_hold() -> None:
    partitions = [Partition(number).put(*[1] * 20) for number in range(4)]

    async def somebody_was_here(log: SimulatedLog) -> None:
        await log.append([Append([Record("log.00.02.reflex.passed", {}, b"foreign")])])

    _, stored = drain(*partitions, before=somebody_was_here)
    assert [partition.lost_for for partition in partitions] == [[], [], ["conflict"], []]
    assert of(2, stored) == []
    assert all(of(number, stored) == names(number, 20) for number in (0, 1, 3))


def test_what_the_broker_refuses_is_found_and_the_rest_is_stored() -> None:
    good, bad = Partition(0).put(*[1] * 40), Partition(1).put(*[1] * 10).put(1, data=b"x" * (2 * MAX_RECORD_BYTES))
    refused = bad.outbox[-1]
    _, stored = drain(good, bad)
    assert of(0, stored) == names(0, 40)
    assert of(1, stored) == names(1, 10)
    assert bad.refusals == [refused]
    assert good.refusals == bad.lost_for == []


def test_a_failure_record_that_is_refused_too_is_for_a_person() -> None:
    with pytest.raises(ExceptionGroup) as raised:
        drain(Partition(0).put(1, event=FAILED, data=b"x" * (2 * MAX_RECORD_BYTES)))
    assert raised.group_contains(Misconfigured, match="not store even a failure record")


def test_appends_wait_while_the_broker_cannot_store() -> None:
    partitions = [Partition(number).put(1, 1) for number in range(3)]
    _, stored = drain(*partitions, faults=Faults(busy=0.7))
    assert len(stored) == 6
    assert all(not partition.lost_for for partition in partitions)


def test_a_doubtful_outcome_makes_everybody_in_it_recover() -> None:
    partitions = [Partition(number).put(*[1] * 20) for number in range(4)]
    committer, _ = drain(*partitions, faults=Faults(lost_reply=1.0))
    assert [partition.lost_for for partition in partitions] == [["unknown_outcome"]] * 4
    assert committer.appended == 0


def test_what_was_thrown_away_while_under_way_is_not_credited() -> None:
    partition = Partition(0).put(1)

    async def body(stream: SimulatedStream) -> None:
        async with asyncio.TaskGroup() as tasks:
            committer = Committer(log_of(stream), tasks)
            running = tasks.create_task(committer.run())
            committer.submit(partition)
            await asyncio.sleep(0.05)  # in virtual time: the append is on its way
            partition.forget()
            partition.put(1)
            await committer.drained()
            running.cancel()

    in_world(body, Faults(request_delay_s=(0.1, 0.1), reply_delay_s=(0.1, 0.1)))
    # The second decision meets the first one's append: without a recovery in between its fence cannot hold.
    assert partition.lost_for == ["conflict"]
    assert partition.last == 0


def test_many_appends_that_wait_for_a_broker_are_one_line_now_and_then() -> None:
    partitions = [Partition(number).put(1) for number in range(SINGLES)]

    async def body(stream: SimulatedStream) -> None:
        async with asyncio.TaskGroup() as tasks:
            committer = Committer(log_of(stream), tasks)
            running = tasks.create_task(committer.run())
            for partition in partitions:
                committer.submit(partition)
            await asyncio.sleep(30.0)  # in virtual time: each of them has tried thirty times
            assert committer.appended == 0
            stream.faults = CALM
            await committer.drained()
            running.cancel()

    with capture_logs() as lines:
        stream = in_world(body, Faults(busy=1.0))
    assert len(data_of(stream)) == SINGLES
    assert [line["event"] for line in lines].count("append_waits") == 1


def test_a_single_event_is_sent_in_the_turn_in_which_it_is_started() -> None:
    partition = Partition(0).put(1, 1)

    async def body(stream: SimulatedStream) -> None:
        async with asyncio.TaskGroup() as tasks:
            committer = Committer(log_of(stream), tasks)  # nothing runs it
            committer.submit(partition)
            committer.start()
            assert not committer.idle
            await asyncio.sleep(1.0)

    stream = in_world(body)
    assert data_of(stream) == [b"0-1"], "one append of a partition is in flight at a time"
    assert partition.last == 1


def test_an_outcome_that_comes_after_the_end_changes_nothing() -> None:
    partition = Partition(0).put(1)

    async def body(stream: SimulatedStream) -> None:
        async with asyncio.TaskGroup() as tasks:
            committer = Committer(log_of(stream), tasks)
            committer.submit(partition)
            committer.start()
            committer.close()
            await asyncio.sleep(1.0)

    stream = in_world(body)
    assert data_of(stream) == [b"0-1"]
    assert (partition.last, partition.lost_for, len(partition.outbox)) == (0, [], 1)


def test_what_goes_wrong_when_an_outcome_is_noted_ends_the_committer() -> None:
    class Broken(Partition):
        def committed(self, groups: Sequence[Group], last_seq: int) -> None:
            raise ArithmeticError

    with pytest.raises(ExceptionGroup) as raised:
        drain(Broken(0).put(1))
    assert raised.group_contains(ArithmeticError)
