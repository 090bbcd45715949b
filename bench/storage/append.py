"""Appending: fenced appends and group commit, compared with raw nats-py on the same server, stream and payload.

A fenced append is stored only if the last message of its partition is the one that the writer knows. Group commit
appends the decisions of many partitions as one atomic batch. The peer does less: it does not check the stream's last
sequence, and it waits for ever after a lost connection. In each round, each case appends the same number of prepared
records; cases run in turns, and the median round counts. Run it with ``python -m bench.storage.append [RECORDS]``.
"""

import asyncio
import itertools
import sys
import time
from collections import deque
from collections.abc import Coroutine, Sequence
from functools import partial
from typing import Any

import nats
from nats.js import JetStreamContext

from actors.runtime.committer import Committer, Group
from bench.harness.server import SYNCS, nats_server
from bench.harness.table import Measure, Row, is_brief, measure_in_turns, rows_of, show
from events.jetstream import JetStreamLog
from events.log import Append, Fence, Record
from events.make_decision import NewEvent
from schemas.actor import Message
from schemas.envelope import Envelope, encode_headers
from schemas.event import encode_event
from schemas.identity import event_id
from schemas.vocabulary.reflex import ReflexPassed

RECORDS = 2_000
"""Records that a case appends in a round, by default."""

ROUNDS = 5
IN_FLIGHT = 16
"""Concurrent appends in the second group of cases, each to a partition of its own."""

GROUPS = 100
"""Decisions of one event that wait in the outbox of each partition in the third group of cases."""

_EVENT = ReflexPassed()
_TOPIC = "forged_id.reflex.passed"
_numbers = itertools.count()


def _records(count: int, partition: int) -> list[Record]:
    """Return new records of one partition, enveloped as an actor's events are."""
    return [record_of(next(_numbers), partition) for _ in range(count)]


def record_of(number: int, partition: int) -> Record:
    """Return a record of one partition, enveloped as an actor's events are."""
    exchange = event_id("exchange", "bench", number)
    envelope = Envelope(
        id=event_id(exchange, "reflex", 0),
        topic=_TOPIC,
        source="neuraxis/bench/reflex",
        time="2025-06-15T15:06:40.000000Z",
        agent="agent",
        session=f"session-{number % 499}",
        exchange=exchange,
        cause=event_id(exchange, "gateway", 0),
        cause_seq=number,
        build="0.1.0+01234567",
        traceparent=f"00-{exchange}-{exchange[:16]}-01",
    )
    return Record(f"log.00.{partition:02d}.reflex.passed", encode_headers(envelope), encode_event(_EVENT))


def filter_of(partition: int) -> str:
    """Return the subjects of all events that a partition of ``reflex`` writes."""
    return f"log.*.{partition:02d}.reflex.>"


class _Bench:
    """A ``JetStreamLog`` and a raw client, on one server and one stream."""

    def __init__(self, log: JetStreamLog, raw: JetStreamContext, count: int) -> None:
        self._log = log
        self._raw = raw
        self._count = count

    async def fenced(self, in_flight: int) -> float:
        """Append one by one with fences, to ``in_flight`` partitions at once; return events a second."""
        lasts = [await self._log.last(filter_of(partition)) for partition in range(in_flight)]

        async def write(partition: int, records: Sequence[Record]) -> None:
            last = lasts[partition]
            for record in records:
                last = await self._log.append([Append([record], Fence(filter_of(partition), last))])

        return await self._timed(
            [write(partition, self._share(partition, in_flight)) for partition in range(in_flight)]
        )

    async def raw(self, in_flight: int, headers: bool) -> float:
        """Publish one by one with ``js.publish``, in ``in_flight`` tasks at once; return events a second."""

        async def write(records: Sequence[Record]) -> None:
            for record in records:
                await self._raw.publish(record.subject, record.data, headers=dict(record.headers) if headers else None)

        return await self._timed([write(self._share(partition, in_flight)) for partition in range(in_flight)])

    async def raw_pipelined(self) -> float:
        """Publish with ``js.publish_async``, 256 futures in flight, nats-py's fastest way; return events a second."""
        records = self._share(0, 1)
        slots = asyncio.Semaphore(256)

        async def write() -> None:
            futures = []
            for record in records:
                await slots.acquire()
                future = await self._raw.publish_async(record.subject, record.data, headers=dict(record.headers))
                future.add_done_callback(lambda _: slots.release())
                futures.append(future)
            await asyncio.gather(*futures)

        return await self._timed([write()])

    async def group_commit(self) -> float:
        """Let a committer drain the outboxes of partitions that all have a backlog; return events a second."""
        async with asyncio.TaskGroup() as tasks:
            committer = Committer(self._log, tasks)
            writers = [
                _Partition(partition, await self._log.last(filter_of(partition))) for partition in range(IN_FLIGHT)
            ]
            for writer in writers:
                writer.outbox.extend(_group(record) for record in _records(GROUPS, writer.number))
            running = tasks.create_task(committer.run())
            start = time.perf_counter()
            for writer in writers:
                committer.submit(writer)
            await committer.drained()
            took = time.perf_counter() - start
            running.cancel()
        return committer.appended / took

    def _share(self, partition: int, in_flight: int) -> list[Record]:
        return _records(self._count // in_flight, partition)

    async def _timed(self, work: Sequence[Coroutine[Any, Any, None]]) -> float:
        start = time.perf_counter()
        await asyncio.gather(*work)
        return self._count // len(work) * len(work) / (time.perf_counter() - start)


class _Partition:
    """The committer's view of a partition whose decisions are all made."""

    def __init__(self, number: int, last: int) -> None:
        self.number = number
        self.outbox: deque[Group] = deque()
        self.epoch = 0
        self._last = last

    def fence(self) -> Fence:
        return Fence(filter_of(self.number), self._last)

    def committed(self, groups: Sequence[Group], last_seq: int) -> None:
        for _ in groups:
            self.outbox.popleft()
        self._last = last_seq

    def reset(self, reason: str, last: int | None = None) -> None:
        raise RuntimeError(f"partition {self.number}: {reason}")

    def refused(self, group: Group) -> None:
        raise RuntimeError(f"partition {self.number}: {group} was refused")


def _group(record: Record) -> Group:
    message = Message(_EVENT, 0, record.headers["ce-id"], 0)
    return Group((NewEvent(message, _TOPIC, record.subject, record.data, "", 0, 0, 1),), (record,))


async def _run(url: str, sync: str, count: int) -> list[Row]:
    log = await JetStreamLog.connect(url)
    client = await nats.connect(url)
    bench = _Bench(log, client.jetstream(), count)
    rows: list[Row] = []
    raw, bare = "js.publish", "js.publish without headers"
    for in_flight in (1, IN_FLIGHT):
        cases: dict[str, Measure] = {
            "fenced append": partial(bench.fenced, in_flight),
            raw: partial(bench.raw, in_flight, True),
            bare: partial(bench.raw, in_flight, False),
        }
        medians = await measure_in_turns(cases, ROUNDS)
        rows += rows_of(medians, {"fenced append": (raw, bare)}, f"sync {sync}, {in_flight} in flight", "events/s")
    pipelined = "js.publish_async, 256 in flight, no fence"
    cases = {
        f"group commit, {IN_FLIGHT} partitions": bench.group_commit,
        raw: partial(bench.raw, IN_FLIGHT, True),
        pipelined: bench.raw_pipelined,
    }
    medians = await measure_in_turns(cases, ROUNDS)
    ours = next(iter(cases))
    rows += rows_of(medians, {ours: (raw, pipelined)}, f"sync {sync}, backlog", "events/s")
    await client.close()
    await log.close()
    return rows


def run(count: int = RECORDS) -> list[Row]:
    """Measure every case with ``count`` records in each round; takes about a minute."""
    rows: list[Row] = []
    for sync in SYNCS[:1] if is_brief() else SYNCS:
        with nats_server(sync) as url:
            rows += asyncio.run(_run(url, sync, count))
    return rows


def main() -> None:
    """Print the rows as a table."""
    show(run(int(sys.argv[1]) if len(sys.argv) > 1 else RECORDS))


if __name__ == "__main__":
    main()
