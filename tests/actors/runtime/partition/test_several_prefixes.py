"""An owner of several prefixes on a real broker: its fence counts one of them, and its decisions come back whole.

Self-review writes ``self_review.*``, ``trace.*`` and ``resolved``. A decision may end in one that no fence counts.
"""

import asyncio
from collections.abc import Sequence

import pytest

from actors import self_review
from events.jetstream import JetStreamLog
from events.log import Append, Record, Stored
from events.routes import fence_filter, own_filters
from schemas.envelope import Envelope, encode_headers
from schemas.event import encode_event, topic_of
from schemas.subjects import NO_PARTITION, stored_subject
from schemas.vocabulary.loops import TickObserved
from tests.actors.runtime.living import PARTITIONS, OnlyMe, living, on_broker
from tests.actors.runtime.waiting import DEADLINE_S
from tests.actors.self_review.builders import BETTER, WARM_UP, tick
from tests.broker import Broker
from tests.events.setting import collect
from tests.judging import replayed

ACTORS = (self_review.ACTOR,)
REVIEW = ["self_review.triggered", "self_review.result", "self_review.measured", *["trace.seat_added"] * 4]
RESOLUTION = ["self_review.disarmed", "resolved"]


def cycle(number: int) -> list[TickObserved]:
    """Return a review by an affect shock of its own, and its resolution."""
    return [tick(arousal=0.5 + 0.1 * number, valence=-0.5, **BETTER), *[tick()] * 3]


def record(event: TickObserved, number: int) -> Record:
    topic = topic_of(event)
    envelope = Envelope(id=f"tick-{number}", topic=topic, source="test", time="", agent="felix")
    subject = stored_subject(topic, PARTITIONS.agent_token("felix"), NO_PARTITION)
    return Record(subject, encode_headers(envelope), encode_event(event))


async def tell(log: JetStreamLog, events: Sequence[TickObserved], first: int) -> None:
    for number, event in enumerate(events, first):
        await log.append([Append([record(event, number)])])


async def written(log: JetStreamLog, wanted: int) -> list[Stored]:
    """Return what self-review wrote, in order, once it is as much as wanted; its settings are left out."""
    async with asyncio.timeout(DEADLINE_S):
        while True:
            found = [each for each in await collect(log) if not each.subject.endswith((".configured", ".observed"))]
            if len(found) >= wanted:
                return found
            await asyncio.sleep(0.05)


def names(found: Sequence[Stored]) -> list[str]:
    return [each.subject.split(".", 3)[3] for each in found]


def test_the_fence_counts_the_main_prefix_and_the_view_reads_them_all():
    assert fence_filter(self_review.ACTOR, "01") == "log.01.*.self_review.>"
    assert {name.split(".", 3)[3] for name in own_filters(self_review.ACTOR)} >= {
        "self_review.>", "trace.>", "resolved"
    }  # fmt: skip


@pytest.mark.parametrize("snapshot_every", [1_000, 1], ids=["from the log", "from snapshots"])
def test_decisions_that_end_in_another_prefix_are_followed_by_others_without_a_conflict(
    broker: Broker, snapshot_every: int
):
    each = len(REVIEW) + len(RESOLUTION)

    async def body(log: JetStreamLog) -> None:
        await tell(log, [tick()] * WARM_UP, 0)
        for number in range(3):
            # A worker each: the second and third begin behind a decision that the fence does not count whole.
            async with living(broker, "a", actors=ACTORS, snapshot_every=snapshot_every) as worker:
                for again in range(2):
                    cycles = 2 * number + again
                    await tell(log, cycle(cycles), WARM_UP + 4 * cycles)
                    await written(log, each * (cycles + 1))
                assert worker.worker.counters.conflicts == 0
                await worker.stopped()
        found = await written(log, 6 * each)
        assert names(found) == 6 * (REVIEW + RESOLUTION)
        _, report = replayed(ACTORS, await collect(log), PARTITIONS)
        assert report.differences == ()

    on_broker(broker, body)


def test_two_owners_at_once_write_every_decision_once(broker: Broker):
    async def body(log: JetStreamLog) -> None:
        async with (
            living(broker, "a", actors=ACTORS, membership=OnlyMe()),
            living(broker, "b", actors=ACTORS, membership=OnlyMe()),
        ):
            await tell(log, [*[tick()] * WARM_UP, *(event for number in range(5) for event in cycle(number))], 0)
            found = await written(log, 5 * (len(REVIEW) + len(RESOLUTION)))
        assert names(found) == 5 * (REVIEW + RESOLUTION)

    on_broker(broker, body)
