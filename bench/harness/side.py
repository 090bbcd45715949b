"""One side of a comparison: a measured process, and a load for it.

The load begins pipelines (chains of hops) by publishing their inputs, and reads the messages that end them. Inputs are
published without waiting for anything.
"""

import asyncio
import contextlib
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any

import msgspec
import nats
from nats.aio.client import Client
from nats.aio.msg import Msg

from bench.harness.hops_faststream import STREAM, SUBJECTS
from bench.harness.server import SYNCS, nats_server
from bench.harness.table import Row, is_brief, show

OURS = "neuraxis"
"""The name of this runtime's side."""

FASTSTREAM = ("pull", "push")
"""The kinds of subscriber that the peer has."""

SATURATED_S = 3.0
"""Seconds for which a fixed number of pipelines is kept under way."""

_SILENCE_S = 20.0
"""Seconds after a load within which its last pipeline must end."""

Publish = Callable[[Client, int], Awaitable[None]]
"""Publishes the input of a pipeline, given its number."""


class Side:
    """One side's process, and a load for it.

    ``publish`` begins a pipeline by its number; ``number_of`` returns the number from the message that ends it.

    Attributes:
        stream: The stream that the side's messages are stored in.
        cpu_us: CPU microseconds that the side's process used for a pipeline, in each round.
    """

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        client: Client,
        stream: str,
        publish: Publish,
        number_of: Callable[[Msg], int],
    ) -> None:
        self.stream = stream
        self.cpu_us: list[float] = []
        self._process = process
        self._client = client
        self._publish = publish
        self._number_of = number_of
        self._next = 0  # the number of the last pipeline
        self._sent: dict[int, float] = {}  # pipeline under way -> when it began
        self._took: list[float] = []  # seconds of each that ended
        self._target = 0  # how many are to be under way
        self._until = 0.0  # until when that holds
        self._done = asyncio.Event()

    @classmethod
    @contextlib.asynccontextmanager
    async def open(
        cls, url: str, command: list[str], stream: str, end: str, publish: Publish, number_of: Callable[[Msg], int]
    ) -> AsyncIterator["Side"]:
        """Start a side's process for the length of an ``async with`` block; pipelines end on the subject ``end``."""
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
            side = cls(process, client, stream, publish, number_of)
            await client.jetstream().subscribe(end, stream=stream, ordered_consumer=True, cb=side._ended)
            yield side
        finally:
            await client.close()
            process.stdin.close()
            async with asyncio.timeout(30):
                await process.wait()

    async def saturated(self, under_way: int) -> float:
        """Keep ``under_way`` pipelines under way for ``SATURATED_S``; return pipelines a second."""
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

    async def steady(self, rate: float, seconds: float) -> list[float]:
        """Send ``rate`` inputs a second for ``seconds``; return the seconds that each pipeline took, sorted."""
        self._took.clear()
        used = await self._cpu_s()
        self._target = 0
        start = time.perf_counter()
        for number in range(int(rate * seconds)):
            await asyncio.sleep(start + number / rate - time.perf_counter())
            await self._send()
        await self._drained()
        self.cpu_us.append(1e6 * (await self._cpu_s() - used) / len(self._took))
        return sorted(self._took)

    async def last_seq(self) -> int:
        """Return the sequence of the last message in the side's stream."""
        return (await self._client.jetstream().stream_info(self.stream)).state.last_seq

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
        async with asyncio.timeout(SATURATED_S + _SILENCE_S):
            await self._done.wait()

    async def _ended(self, msg: Msg) -> None:
        sent = self._sent.pop(self._number_of(msg), None)
        if sent is None:
            return
        now = time.perf_counter()
        self._took.append(now - sent)
        if len(self._sent) < self._target and now < self._until:
            await self._send()
        elif not self._sent:
            self._done.set()


def number_in(body: bytes) -> int:
    """Return the number of the pipeline that a body belongs to: the value of its first ``number``."""
    start_index = body.index(b'"number":') + 9
    return int(body[start_index : body.index(b",", start_index)])


def open_faststream(url: str, kind: str, text_of: Callable[[int], str]) -> AbstractAsyncContextManager[Side]:
    """Open the peer: four hops in FastStream with subscribers of one kind (``pull`` or ``push``)."""
    return Side.open(
        url,
        ["-m", "bench.harness.hops_faststream", url, kind],
        f"{STREAM}-{kind}",
        f"{kind}.{SUBJECTS[-1]}",
        partial(_ask_faststream, kind, text_of),
        lambda msg: number_in(msg.data),
    )


async def open_sides(
    stack: contextlib.AsyncExitStack, ours: AbstractAsyncContextManager[Side], url: str, text_of: Callable[[int], str]
) -> dict[str, Side]:
    """Open this runtime's side, and one of each kind of the peer; returns them by name."""
    sides = {OURS: await stack.enter_async_context(ours)}
    for kind in FASTSTREAM:
        sides[f"faststream, {kind}"] = await stack.enter_async_context(open_faststream(url, kind, text_of))
    return sides


async def _ask_faststream(kind: str, text_of: Callable[[int], str], client: Client, number: int) -> None:
    body = msgspec.json.encode({"topic": SUBJECTS[0], "number": number, "text": text_of(number)})
    await client.publish(f"{kind}.{SUBJECTS[0]}", body, headers={"content-type": "application/json"})


def measure_and_show(measure: Callable[[str, str, int], Coroutine[Any, Any, list[Row]]], rounds: int) -> None:
    """Measure at each ``sync_interval``, on a broker of its own, and print the rows as a table.

    ``measure`` takes the broker's URL, its ``sync_interval``, and how many rounds to run: as many as the command line
    says, else ``rounds``.
    """
    rows: list[Row] = []
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 1 if is_brief() else rounds
    for sync in SYNCS[:1] if is_brief() else SYNCS:
        with nats_server(sync) as url:
            rows += asyncio.run(measure(url, sync, rounds))
    show(rows)
