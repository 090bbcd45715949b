"""Workers on a log that lost a message within itself: what it has led to is not done a second time."""

import asyncio
from collections import Counter

import pytest

from actors.gateway import new_input
from actors.registry import ACTORS
from actors.runtime.partition import gap_check
from deploy.processes.reading import serving_reads
from events.jetstream import JetStreamLog
from events.log import Append, Stored
from events.loss_recording import record_loss
from schemas.catalogue import entry_of
from schemas.event import topic_of
from schemas.vocabulary.appraisal import AppraisalCompleted
from schemas.vocabulary.ledger import LossRecorded
from schemas.vocabulary.responder import ResponseEmitted
from tests.actors.runtime.living import PARTITIONS, at_rest, converse, living, log_test, on_broker
from tests.actors.runtime.waiting import DEADLINE_S
from tests.broker import Broker
from tests.events.setting import Setting, back, collect
from tests.faults.cuts import flip_bit_of

SESSIONS = 3


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gap_check, "RECORDED_WITHIN_S", 0.5)


def _last(messages: list[Stored], kind: type) -> Stored:
    return next(stored for stored in reversed(messages) if stored.headers["ce-type"] == topic_of(kind))


@pytest.mark.parametrize(
    ("kind", "stopped", "recorded"),
    [
        (AppraisalCompleted, True, True),
        (AppraisalCompleted, False, False),
        (ResponseEmitted, True, False),
        (ResponseEmitted, False, True),
    ],
    ids=lambda each: each.__name__ if isinstance(each, type) else str(each),
)
@log_test
async def test_what_was_decided_about_a_message_before_it_rotted_is_not_decided_again(
    log: JetStreamLog, kind: type, stopped: bool, recorded: bool, broker: Broker
) -> None:
    """Its writer finds that its last decision is gone, and makes it again; the answer to that is in the log.

    The worker before it was stopped or killed, and the loss is recorded or not: each pair of these is among the cases.
    """
    async with living(broker, "a") as worker:
        await converse(log, SESSIONS, 2)
        await at_rest(log)
        if stopped:
            await worker.stopped()
    rotten = _last(await collect(log), kind)
    broker.stop()
    flip_bit_of(broker.store, rotten.seq)
    broker.start()
    await back(Setting(log, broker.kill, broker.start))
    assert await log.at(rotten.seq) is None
    if recorded:
        loss = LossRecorded(first_seq=rotten.seq, through_seq=rotten.seq, known_by="ledger", given_again=False)
        await record_loss(log, loss, "test", "2026-01-01T00:00:00Z", "")
    async with living(broker, "b"):
        await converse(log, SESSIONS, 1, first=10)
        await at_rest(log)
    messages = await collect(log)
    assert twice(messages) == []
    assert set(ends_of(messages, ResponseEmitted).values()) == {1}


@pytest.mark.parametrize("narrow", [False, True], ids=["reads all", "reads through the read service"])
@log_test
async def test_gaps_that_nobody_recorded_are_found_together_so_that_all_begin_anew_once(
    log: JetStreamLog, broker: Broker, narrow: bool
) -> None:
    """Who has to know of one gap looks for those that others of its process would find after it, one by one."""
    async with living(broker, "a"):
        await converse(log, SESSIONS, 2)
        await at_rest(log)
    rotten = [stored.seq for stored in (await collect(log))[-40:-1:4]]
    broker.stop()
    for seq in rotten:
        flip_bit_of(broker.store, seq)
    broker.start()
    await back(Setting(log, broker.kill, broker.start))
    async with serving_reads(log, "ledger"), living(broker, "b", narrow=narrow):
        await converse(log, SESSIONS, 1, first=10)
        await at_rest(log)
    assert twice(await collect(log)) == []
    found = (await log.losses()).found
    assert [loss.event.first_seq for loss in found] == rotten
    assert [loss.seq for loss in found] == list(range(found[0].seq, found[0].seq + len(rotten)))


@pytest.mark.parametrize("kind", [AppraisalCompleted, ResponseEmitted])
def test_another_process_that_has_answered_a_message_knows_that_it_rotted_before_it_is_repeated(
    kind: type, broker: Broker
) -> None:
    """No projector runs: the process that finds its message missing records the gap before it writes it again."""
    owner = entry_of(kind).owner
    others = tuple(actor for actor in ACTORS.values() if actor.name != owner)

    async def body(log: JetStreamLog) -> None:
        async with living(broker, "others", actors=others):
            async with living(broker, "first", actors=(ACTORS[owner],)):
                await converse(log, SESSIONS, 2)
                await at_rest(log)
            rotten = _last(await collect(log), kind)
            # Without the last that it read a process cannot know its log again, and begins anew (test_lost_tails).
            await _read_on(log)
            broker.stop()
            flip_bit_of(broker.store, rotten.seq)
            broker.start()
            await back(Setting(log, broker.kill, broker.start))
            async with living(broker, "second", actors=(ACTORS[owner],)):
                await converse(log, SESSIONS, 1, first=10)
                await at_rest(log)
        messages = await collect(log)
        assert twice(messages) == []
        losses = await log.losses()
        assert [(loss.event.first_seq, loss.event.through_seq) for loss in losses.found] == [(rotten.seq, rotten.seq)]
        repeated = [s.seq for s in messages if s.headers["ce-id"] == rotten.headers["ce-id"]]
        assert all(losses.last_seq < seq for seq in repeated)

    on_broker(broker, body)


async def _read_on(log: JetStreamLog) -> None:
    """Have an input come in, and wait until somebody has decided about it."""
    addressed = new_input("Hello", agent="agent-0", session="later", partitions=PARTITIONS, now_ns=1, exchange="later")
    await log.append([Append([addressed.record])])
    async with asyncio.timeout(DEADLINE_S):
        while True:
            if sum(stored.headers.get("ce-exchange") == "later" for stored in await collect(log)) > 1:
                return
            await asyncio.sleep(0.05)


def ends_of(messages: list[Stored], kind: type) -> Counter[str]:
    """Return how many events of a kind each exchange has, of those that have any."""
    return Counter(stored.headers["ce-exchange"] for stored in messages if stored.headers["ce-type"] == topic_of(kind))


def twice(messages: list[Stored]) -> list[str]:
    """Return the ids of events that are in the log more than once."""
    return [id for id, count in Counter(stored.headers["ce-id"] for stored in messages).items() if count > 1]
