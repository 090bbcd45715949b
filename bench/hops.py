"""Four persisted hops, input to A to B to C to D: the runtime beside FastStream with JetStream, pull and push.

Each side has a process of its own and the same load from this one: inputs published without waiting, ends read from
the stream by an ordered consumer. Saturated: pipelines a second with a fixed number under way. At a fixed rate: the
time from an input's publication to its end. Sides take turns; the median round counts. The peer does less: it fences
nothing, keeps no state, and a handler that dies between publishing and acknowledging repeats its event. Run it with
``python -m bench.hops [ROUNDS]``.
"""

import asyncio
import contextlib
import statistics
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial

import nats
from nats.aio.client import Client
from nats.aio.msg import Msg

from bench.hops_faststream import STREAM, SUBJECTS
from bench.hops_neuraxis import Asked, FourthPassed
from bench.server import SYNCS, nats_server
from bench.table import Measure, Row, measure_in_turns, rows_of, show
from events.jetstream.stream import DEFAULT_STREAM
from schemas.envelope import Envelope, encode_headers
from schemas.event import encode_event, topic_of
from schemas.identity import event_id
from schemas.subjects import Partitions, stored_subject, topic_filter

ROUNDS = 3
SATURATED_S = 3.0
STEADY_S = 3.0
RATE = 100
"""Inputs a second in the latency cases."""

UNDER_WAY = (64, 512)
OURS = "neuraxis"
SESSIONS = 499
TEXT = "What did we discuss about the lease of the office? " * 3
_PARTITIONS = Partitions()
_SILENCE = 20.0
Publish = Callable[[Client, int], Awaitable[None]]


class Side:
    """One side's process, and a load for it.

    ``publish`` sends an input by its number; ends are messages that carry the number in their body.

    Attributes:
        cpu_us: CPU microseconds that the side's process used for a pipeline, in each saturated round.
    """

    def __init__(self, process: asyncio.subprocess.Process, client: Client, publish: Publish) -> None:
        self.cpu_us: list[float] = []
        self._process = process
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
    async def open(cls, url: str, command: list[str], stream: str, end: str, publish: Publish) -> AsyncIterator["Side"]:
        """Start a side's process for the length of an ``async with`` block; ``end`` is where pipelines end."""
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
                        raise RuntimeError(f"{' '.join(command)} did not start")
            side = cls(process, client, publish)
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
        used = await self._cpu_s()
        self._target, self._until = under_way, time.perf_counter() + SATURATED_S
        start = time.perf_counter()
        for _ in range(under_way):
            await self._send()
        await self._drained()
        took = time.perf_counter() - start
        self.cpu_us.append(1e6 * (await self._cpu_s() - used) / len(self._took))
        return len(self._took) / took

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

    async def _cpu_s(self) -> float:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(b"\n")
        return float(await self._process.stdout.readline())

    async def _send(self) -> None:
        self._next += 1
        self._done.clear()
        self._sent[self._next] = time.perf_counter()
        await self._publish(self._client, self._next)

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


async def _ask_faststream(how: str, client: Client, number: int) -> None:
    body = b'{"topic":"%s","number":%d,"text":"%s"}' % (SUBJECTS[0].encode(), number, TEXT.encode())
    await client.publish(f"{how}.{SUBJECTS[0]}", body, headers={"content-type": "application/json"})


async def _warmed_up(stack: contextlib.AsyncExitStack, url: str, sync: str) -> dict[str, Side]:
    neuraxis = Side.open(
        url,
        ["-m", "bench.hops_neuraxis", url, sync],
        DEFAULT_STREAM,
        topic_filter(topic_of(FourthPassed)),
        _ask_neuraxis,
    )
    sides = {OURS: await stack.enter_async_context(neuraxis)}
    for how in ("pull", "push"):
        command = ["-m", "bench.hops_faststream", url, how]
        faststream = Side.open(url, command, f"{STREAM}-{how}", f"{how}.{SUBJECTS[-1]}", partial(_ask_faststream, how))
        sides[f"faststream, {how}"] = await stack.enter_async_context(faststream)
    for side in sides.values():
        await side.saturated(UNDER_WAY[0])
    return sides


async def _run(url: str, sync: str, rounds: int) -> list[Row]:
    rows: list[Row] = []
    async with contextlib.AsyncExitStack() as stack:
        sides = await _warmed_up(stack, url, sync)
        peers = {OURS: [name for name in sides if name != OURS]}
        for under_way in UNDER_WAY:
            for side in sides.values():
                side.cpu_us.clear()
            cases: dict[str, Measure] = {name: partial(side.saturated, under_way) for name, side in sides.items()}
            medians = await measure_in_turns(cases, rounds)
            rows += rows_of(medians, peers, f"sync {sync}, {under_way} under way", "pipelines/s")
            medians = {name: statistics.median(side.cpu_us) for name, side in sides.items()}
            rows += rows_of(medians, peers, f"sync {sync}, {under_way} under way", "CPU µs a pipeline")
        took: dict[str, list[list[float]]] = {name: [] for name in sides}
        for _ in range(rounds):
            for name, side in sides.items():
                took[name].append(await side.steady())
        for percent in (50, 99):
            medians = {
                name: statistics.median(1e3 * samples[len(samples) * percent // 100] for samples in found)
                for name, found in took.items()
            }
            rows += rows_of(medians, peers, f"sync {sync}, {RATE}/s, p{percent}", "ms")
    return rows


def run(rounds: int = ROUNDS) -> list[Row]:
    """Measure every case; takes about four minutes."""
    rows: list[Row] = []
    for sync in SYNCS:
        with nats_server(sync) as url:
            rows += asyncio.run(_run(url, sync, rounds))
    return rows


def main() -> None:
    """Print the rows as a table."""
    show(run(int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS))


if __name__ == "__main__":
    main()
