"""Four persisted hops, input to A to B to C to D: the runtime beside FastStream with JetStream.

Each side has a process of its own and the same load from this one: inputs published without waiting, ends read from the
stream by an ordered consumer. Saturated: pipelines a second with a fixed number under way. At a fixed rate: the time from
an input's publication to its end. Sides take turns; the median round counts. Run it with ``python -m bench.hops``.
"""

import asyncio
import contextlib
import sys
import time
from collections.abc import AsyncIterator, Callable

import nats
from nats.aio.client import Client
from nats.aio.msg import Msg

from bench.hops_faststream import STREAM, SUBJECTS
from bench.hops_neuraxis import Asked
from bench.server import SYNCS, nats_server
from bench.table import Measure, Row, measure_in_turns, rows_of, show
from events.jetstream.stream import DEFAULT_STREAM
from schemas.envelope import Envelope, encode_headers
from schemas.event import encode_event, topic_of
from schemas.identity import event_id
from schemas.subjects import Partitions, stored_subject

ROUNDS = 3
SATURATED_S = 4.0
STEADY_S = 4.0
RATE = 100
"""Inputs a second in the latency cases."""

UNDER_WAY = (64, 512)
SESSIONS = 499
TEXT = "What did we discuss about the lease of the office? " * 3
_PARTITIONS = Partitions()
_SILENCE = 20.0


class Side:
    """One side's process, and a load for it.

    ``publish`` sends an input by its number; ends are messages on ``end_subject`` that carry the number in their body.
    """

    def __init__(self, client: Client, name: str, publish: Callable[[Client, int], object]) -> None:
        self.name = name
        self._client = client
        self._publish = publish
        self._next = 0
        self._sent: dict[int, float] = {}
        self._took: list[float] = []
        self._target = 0
        self._until = 0.0
        self._done = asyncio.Event()

    @classmethod
    @contextlib.asynccontextmanager
    async def open(
        cls, url: str, name: str, command: list[str], stream: str, end: str, publish: Callable[[Client, int], object]
    ) -> AsyncIterator["Side"]:
        process = await asyncio.create_subprocess_exec(
            sys.executable, *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
        )
        assert process.stdin is not None
        assert process.stdout is not None
        client = await nats.connect(url)
        try:
            async with asyncio.timeout(30):
                while (line := await process.stdout.readline()) != b"ready\n":
                    if not line:
                        raise RuntimeError(f"{name} did not start")
            side = cls(client, name, publish)
            await client.jetstream().subscribe(end, stream=stream, ordered_consumer=True, cb=side._ended)
            yield side
        finally:
            await client.close()
            process.stdin.close()
            async with asyncio.timeout(30):
                await process.wait()

    async def saturated(self, under_way: int) -> float:
        """Keep ``under_way`` pipelines going for a while; pipelines a second."""
        self._took.clear()
        self._target, self._until = under_way, time.perf_counter() + SATURATED_S
        start = time.perf_counter()
        for _ in range(under_way):
            await self._send()
        await self._drained()
        return len(self._took) / (time.perf_counter() - start)

    async def steady(self) -> list[float]:
        """Send :data:`RATE` inputs a second for a while; the seconds that each took, sorted."""
        self._took.clear()
        self._target = 0
        start = time.perf_counter()
        for number in range(int(RATE * STEADY_S)):
            await asyncio.sleep(start + number / RATE - time.perf_counter())
            await self._send()
        await self._drained()
        return sorted(self._took)

    async def _send(self) -> None:
        self._next += 1
        self._done.clear()
        self._sent[self._next] = time.perf_counter()
        await self._publish(self._client, self._next)  # type: ignore[misc]

    async def _drained(self) -> None:
        async with asyncio.timeout(SATURATED_S + _SILENCE):
            await self._done.wait()

    async def _ended(self, msg: Msg) -> None:
        body = msg.data
        at = body.index(b'"number":') + 9
        sent = self._sent.pop(int(body[at : body.index(b",", at)]), None)
        if sent is None:
            return
        now = time.perf_counter()
        self._took.append(now - sent)
        if len(self._sent) < self._target and now < self._until:
            await self._send()
        elif not self._sent:
            self._done.set()


async def _ask_neuraxis(client: Client, number: int) -> None:
    exchange = event_id("exchange", "bench", number)
    session = f"session-{number % SESSIONS}"
    event = Asked(number=number, text=TEXT)
    envelope = Envelope(
        id=event_id(exchange, "asked", 0),
        topic=topic_of(event),
        source="neuraxis/bench",
        time="2025-06-15T15:06:40.000000Z",
        agent="agent",
        session=session,
        exchange=exchange,
    )
    subject = stored_subject(topic_of(event), _PARTITIONS.agent_token("agent"), _PARTITIONS.session_token(session))
    await client.publish(subject, encode_event(event), headers=encode_headers(envelope))


async def _ask_faststream(client: Client, number: int) -> None:
    body = b'{"topic":"%s","number":%d,"text":"%s"}' % (SUBJECTS[0].encode(), number, TEXT.encode())
    await client.publish(SUBJECTS[0], body, headers={"content-type": "application/json"})


async def _run(url: str, sync: str) -> list[Row]:
    rows: list[Row] = []
    async with contextlib.AsyncExitStack() as stack:
        ours = await stack.enter_async_context(
            Side.open(
                url, "neuraxis", ["-m", "bench.hops_neuraxis", url], DEFAULT_STREAM, "log.*.*.fourth.passed", _ask_neuraxis
            )
        )
        peer = await stack.enter_async_context(
            Side.open(
                url, "faststream", ["-m", "bench.hops_faststream", url, "pull"], STREAM, SUBJECTS[-1], _ask_faststream
            )
        )
        for side in (ours, peer):
            print(sync, side.name, await side.saturated(64), await side.saturated(64), await side.saturated(512))
            took = await side.steady()
            print(sync, side.name, "p50", took[len(took) // 2] * 1e3, "p99", took[len(took) * 99 // 100] * 1e3)
    return rows


def run() -> list[Row]:
    rows: list[Row] = []
    for sync in SYNCS:
        with nats_server(sync) as url:
            rows += asyncio.run(_run(url, sync))
    return rows


if __name__ == "__main__":
    run()
