"""Workers on a log that lost a message within itself: what it has led to is not done a second time."""

from collections import Counter

import pytest

from actors.runtime import wholeness
from events.jetstream import JetStreamLog
from events.log import Stored
from events.loss_recording import record_loss
from schemas.event import topic_of
from schemas.vocabulary.appraisal import AppraisalCompleted
from schemas.vocabulary.ledger import LossRecorded
from schemas.vocabulary.responder import ResponseEmitted
from tests.actors.runtime.living import at_rest, converse, living
from tests.actors.runtime.test_worker import on_broker
from tests.broker import Broker
from tests.events.setting import Setting, back, collect
from tests.faults.cuts import flip_bit_of

SESSIONS = 3


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wholeness, "RECORDED_WITHIN_S", 0.5)


def _last(messages: list[Stored], kind: type) -> Stored:
    return next(stored for stored in reversed(messages) if stored.headers["ce-type"] == topic_of(kind))


@pytest.mark.parametrize("kind", [AppraisalCompleted, ResponseEmitted])
@pytest.mark.parametrize("stopped", [True, False], ids=["stopped", "killed"])
@pytest.mark.parametrize("recorded", [True, False], ids=["recorded", "found by the worker"])
def test_what_was_decided_about_a_message_before_it_rotted_is_not_decided_again(
    kind: type, stopped: bool, recorded: bool, broker: Broker
) -> None:
    """Its writer finds that its last decision is gone, and makes it again; the answer to that is in the log."""

    async def body(log: JetStreamLog) -> None:
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
        ids = Counter(stored.headers["ce-id"] for stored in messages)
        assert [id for id, count in ids.items() if count > 1] == []
        ends = Counter(s.headers["ce-exchange"] for s in messages if s.headers["ce-type"] == topic_of(ResponseEmitted))
        assert set(ends.values()) == {1}

    on_broker(broker, body)
