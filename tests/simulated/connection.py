"""One worker's connection to the simulated broker, which dies with the worker."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from events.errors import LogError
from tests.simulated.faults import Incident
from tests.simulated.stream import REQUEST_DEADLINE_S, Call, SimulatedStream, fail

T = TypeVar("T")


class Killed(BaseException):
    """The worker is dead: raised by everything it still asks of its connection.

    Not an ``Exception``: no retry loop of the code under test survives the death of its process.
    """


class SimulatedConnection:
    """A worker's end of the simulated network.

    Attributes:
        stream: The broker it is connected to.
        worker: Name, for messages.
        died: Set when the worker is killed.
        points: Crash points passed: three for each request (before it is sent, after, and when the answer came)
            and one before each delivery of a tail.
    """

    def __init__(self, stream: SimulatedStream, worker: str = "worker", *, dies_at: int | None = None) -> None:
        """Connect; with ``dies_at`` the worker is killed at that crash point (the first is 1)."""
        self.stream = stream
        self.worker = worker
        self.died = asyncio.Event()
        self.points = 0
        self._dies_at = dies_at
        self._frozen_until = 0.0
        self._waits: dict[asyncio.Future[object], None] = {}

    def kill(self) -> None:
        """Kill the worker: all it waits for, and all it asks from now on, raises Killed. What is on its way lands."""
        if self.died.is_set():
            return
        self.stream.incidents[Incident.KILLED] += 1
        self.died.set()
        for wait in tuple(self._waits):
            fail(wait, Killed(self.worker))

    def spare(self) -> None:
        """Let the worker live past its crash point after all."""
        self._dies_at = None

    def freeze(self, seconds: float) -> None:
        """Stop the worker as SIGSTOP would, for virtual seconds: it sends and hears nothing, then goes on unaware."""
        self._frozen_until = asyncio.get_running_loop().time() + seconds

    async def thaw(self) -> None:
        """Wait until the worker is not frozen."""
        while (left := self._frozen_until - asyncio.get_running_loop().time()) > 0.0:
            await self.sleep(left)

    def crash_point(self) -> None:
        """Pass a place where the worker may die; raises Killed if it is dead or dies here."""
        self.points += 1
        if self.points == self._dies_at:
            self.kill()
        self.check_alive()

    def check_alive(self) -> None:
        """Raise Killed if the worker is dead."""
        if self.died.is_set():
            raise Killed(self.worker)

    async def request(self, operation: Callable[[], T], in_doubt: type[LogError]) -> T:
        """Have the broker do something and return its result.

        Raises:
            Unavailable: the broker is gone or busy; nothing was done.
            LogError: of class ``in_doubt`` when no answer came in time; whatever ``operation`` raises.
            Killed: the worker is dead.
        """
        await self.thaw()
        self.crash_point()
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()
        call = Call(operation, answer, in_doubt, self._lives)
        self.stream.send(call)
        deadline = loop.call_later(REQUEST_DEADLINE_S, self.stream.give_up, call)
        try:
            self.crash_point()
            result = await self.wait(answer)
        finally:
            deadline.cancel()
            self.stream.forget(call)
            answer.cancel()
        self.crash_point()
        return result

    async def wait(self, future: asyncio.Future[T]) -> T:
        """Wait for a future as long as the worker lives."""
        self._waits[future] = None  # type: ignore[index]  # futures are invariant; only exceptions are put in
        try:
            return await future
        finally:
            del self._waits[future]  # type: ignore[arg-type]  # as above

    async def sleep(self, delay: float) -> None:
        """Wait for seconds of virtual time as long as the worker lives."""
        loop = asyncio.get_running_loop()
        rest: asyncio.Future[None] = loop.create_future()
        timer = loop.call_later(delay, rest.set_result, None)
        try:
            await self.wait(rest)
        finally:
            timer.cancel()

    def _lives(self) -> bool:
        return not self.died.is_set()
