"""What arrives while a set is hurt: inputs by the broker and by HTTP, at half of the rate that the set can take."""

import asyncio
import itertools
import time
from collections.abc import Iterator

import httpx

from actors.gateway import Client, new_input
from events.errors import LogError
from events.jetstream import JetStreamLog
from tests.faults.rig import TEXTS, Load

AT_ONCE = 24
"""Exchanges under way at a time while the greatest rate is measured: more would only wait for each other."""
BY_HTTP = 4
"""Every so manieth input comes by HTTP, as an application sends it."""
HTTP_S = 90.0
"""Seconds that a caller waits at most; an exchange has its end within a minute."""


class MixedLoad(Load):
    """A steady stream of inputs, and when they were accepted.

    Attributes:
        accepted_at: Monotonic time of each acceptance, in order.
        in_doubt: Inputs by HTTP of which their sender does not know whether they are stored.
    """

    def __init__(self, rate: float, http: str = "") -> None:
        super().__init__(rate)
        self.accepted_at: list[float] = []
        self.in_doubt = 0
        self._http = http
        self._caller = httpx.AsyncClient(base_url=http, timeout=HTTP_S, trust_env=False) if http else None

    async def run(self, log: JetStreamLog, stop: asyncio.Event) -> None:
        try:
            await super().run(log, stop)
        finally:
            if self._caller is not None:
                await self._caller.aclose()

    async def _send(self, edge: Client, log: JetStreamLog, number: int) -> None:
        before = len(self.accepted)
        if self._caller is not None and number % BY_HTTP == 0:
            await self._ask(self._caller, number)
        else:
            await super()._send(edge, log, number)
        if len(self.accepted) > before:
            self.accepted_at.append(time.monotonic())

    async def _ask(self, caller: httpx.AsyncClient, number: int) -> None:
        message = {"role": "user", "content": TEXTS[number % len(TEXTS)]}
        try:
            answer = await caller.post("/v1/chat/completions", json={"model": "neuraxis", "messages": [message]})
        except httpx.TransportError:  # the gateway died, or cannot be reached: it may have stored it
            self.in_doubt += 1
            return
        if answer.status_code == 200:
            self.accepted.append(answer.headers["x-neuraxis-exchange"])
        else:
            self.in_doubt += 1

    def pause_after(self, began: float) -> float | None:
        """Return the seconds from a moment to the next acceptance; None if there was none."""
        return next((at - began for at in self.accepted_at if at > began), None)


async def greatest_rate(log: JetStreamLog, seconds: float, accepted: list[str]) -> float:
    """Return how many exchanges a second end while some are always under way; adds their ids to ``accepted``."""
    ended = 0
    end = time.monotonic() + seconds

    async def converse(edge: Client, numbers: Iterator[int]) -> None:
        nonlocal ended
        while time.monotonic() < end:
            number = next(numbers)
            addressed = new_input(
                TEXTS[number % len(TEXTS)],
                agent=f"agent-{number % 3}",
                session=f"measured-{number % AT_ONCE}",
                partitions=log.partitions,
                now_ns=time.time_ns(),
            )
            try:
                await edge.submit(addressed)
                accepted.append(addressed.exchange)
                await edge.await_end(addressed.exchange, HTTP_S)
            except (LogError, TimeoutError):
                continue
            ended += time.monotonic() < end

    numbers = itertools.count()
    async with Client.open(log) as edge:
        await asyncio.gather(*(converse(edge, numbers) for _ in range(AT_ONCE)))
    return ended / seconds


async def until_one_succeeds(log: JetStreamLog, within_s: float) -> list[str]:
    """Have exchanges, one after another, until one ends otherwise than by a failure; return their ids.

    A set says that it is ready while workers of other machines are still recovering.
    """
    begun, had = time.monotonic(), []
    async with Client.open(log) as edge:
        while True:
            addressed = new_input(
                TEXTS[0], agent="agent-0", session="the-last", partitions=log.partitions, now_ns=time.time_ns()
            )
            await edge.submit(addressed)
            had.append(addressed.exchange)
            end = await edge.await_end(addressed.exchange, HTTP_S)
            if end.event.action != "FAILED":
                return had
            assert time.monotonic() - begun < within_s, end
