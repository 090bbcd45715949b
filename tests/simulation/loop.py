"""An event loop in virtual time: nothing sleeps, nothing is random but by the seed.

When no callback is ready the clock jumps to the next timer. With a seed the callbacks that are ready in the same
iteration run in an order drawn from it, so that no code comes to rely on the accidental one. Threads and
sockets are refused: they would bring real time in.
"""

import asyncio
import heapq
import math
import random
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any, NoReturn, TypeVar

T = TypeVar("T")

EPOCH_NS = 1_750_000_000_000_000_000
"""Unix nanoseconds at which virtual time starts unless told otherwise."""

STANDSTILL = 1_000_000
"""Iterations without a step of the clock after which the loop takes itself to be spinning (some seconds of work)."""


class Deadlock(RuntimeError):
    """Nothing is ready, no timer is set, and what the loop was asked to run is not done."""


class Livelock(RuntimeError):
    """Callbacks keep each other ready for ever and the clock never moves."""


class Unhandled(RuntimeError):
    """A callback or a forgotten task raised; in production this would be a line in a log that nobody reads."""


class _NumberedTask(asyncio.Task[Any]):
    """A task that hashes by its number: ``TaskGroup`` and ``asyncio.wait`` keep tasks in sets, which would else be
    walked in the order of memory addresses."""

    def __init__(self, coro: Coroutine[Any, Any, Any], *, number: int, loop: asyncio.AbstractEventLoop, **more: Any):
        self.number = number
        super().__init__(coro, loop=loop, **more)

    def __hash__(self) -> int:
        return self.number


class _Timer(asyncio.TimerHandle):
    """A timer that states a time one rounding step after the clock's when it fires, as uvloop's timers may."""

    def when(self) -> float:
        return math.nextafter(self._when, math.inf)


class VirtualLoop(asyncio.BaseEventLoop):
    """An asyncio event loop whose clock is virtual.

    ``seed`` None keeps the order in which callbacks became ready. ``time()`` starts at 0.0 seconds and
    ``time_ns()`` at ``epoch_ns``. ``standstill`` is the number of iterations at one moment that counts as spinning.

    Attributes:
        unhandled: What reached the loop's exception handler, in asyncio's own form.
    """

    # Set by BaseEventLoop, which is made to be extended but whose stubs leave them out.
    _ready: deque[asyncio.Handle]
    _scheduled: list[_Timer]
    _stopping: bool

    def __init__(self, seed: int | None = None, *, epoch_ns: int = EPOCH_NS, standstill: int = STANDSTILL) -> None:
        super().__init__()
        self._epoch_ns = epoch_ns
        self._now = 0.0
        self._random = None if seed is None else random.Random(f"order {seed}")
        self._standstill = 0
        self._standstill_limit = standstill
        self._cancelled_timers = 0
        self._tasks_made = 0
        self.unhandled: list[dict[str, Any]] = []
        self.set_task_factory(self._make_task)
        self.set_exception_handler(lambda _, context: self.unhandled.append(context))

    def time(self) -> float:
        """Return the virtual seconds since the loop was made."""
        return self._now

    def time_ns(self) -> int:
        """Return the virtual Unix time in nanoseconds."""
        return self._epoch_ns + round(self._now * 1e9)

    def call_at(
        self, when: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Have a function called at a virtual time."""
        timer = _Timer(when, callback, args, self, context)
        heapq.heappush(self._scheduled, timer)
        timer._scheduled = True
        return timer

    def run_in_executor(self, *_: Any) -> NoReturn:  # type: ignore[override]  # whatever it is asked, it refuses
        """Refuse: a thread runs in real time."""
        raise RuntimeError("no threads (and no name resolution) in virtual time: their order is not the seed's")

    def _write_to_self(self) -> None:
        """There is no other thread whose callback would have to wake this one."""

    def _make_task(self, loop: asyncio.AbstractEventLoop, coro: Any, **more: Any) -> asyncio.Task[Any]:
        self._tasks_made += 1
        return _NumberedTask(coro, number=self._tasks_made, loop=loop, **more)

    def _timer_handle_cancelled(self, _: asyncio.TimerHandle) -> None:
        # Deadlines of requests that were answered: without this the heap grows with every request of a world.
        self._cancelled_timers += 1
        if self._cancelled_timers > 64 + len(self._scheduled) // 2:
            self._scheduled = [timer for timer in self._scheduled if not timer.cancelled()]
            heapq.heapify(self._scheduled)
            self._cancelled_timers = 0

    def _run_once(self) -> None:
        self._advance()
        ready = self._ready
        while self._scheduled and self._scheduled[0]._when <= self._now:
            ready.append(heapq.heappop(self._scheduled))
        if self._random is not None and len(ready) > 1:
            draw = self._random.random
            shuffled = sorted(ready, key=lambda _: draw())
            ready.clear()
            ready.extend(shuffled)
        # Callbacks that these make ready belong to the next iteration.
        for _ in range(len(ready)):
            handle = ready.popleft()
            if not handle.cancelled():
                handle._run()

    def _advance(self) -> None:
        while self._scheduled and self._scheduled[0].cancelled():
            heapq.heappop(self._scheduled)
        if self._ready or self._stopping:
            self._standstill += 1
            if self._standstill > self._standstill_limit:
                raise Livelock(
                    f"{self._standstill_limit} iterations at {self._now:.6f} s; ready: {list(self._ready)[:5]}"
                )
            return
        if not self._scheduled:
            raise Deadlock(f"at {self._now:.6f} s nothing can happen any more; waiting: {_waiting(self)}")
        self._standstill = 0
        self._now = max(self._now, self._scheduled[0]._when)


def _unfinished(loop: VirtualLoop) -> list[asyncio.Task[Any]]:
    return sorted(asyncio.all_tasks(loop), key=hash)


def _waiting(loop: VirtualLoop) -> str:
    tasks = ((task.get_name(), task.get_stack(limit=1)) for task in _unfinished(loop))
    return ", ".join(
        f"{name} at {stack[-1].f_code.co_filename}:{stack[-1].f_lineno}" if stack else name for name, stack in tasks
    )


def run_virtual(
    main: Coroutine[Any, Any, T], seed: int | None = None, *, epoch_ns: int = EPOCH_NS, standstill: int = STANDSTILL
) -> T:
    """Run a coroutine to its end in virtual time and return its result; tasks it leaves behind are cancelled.

    Raises:
        Deadlock, Livelock: it can never end.
        Unhandled: it ended, but a callback or a task that nobody awaited raised.
    """
    loop = VirtualLoop(seed, epoch_ns=epoch_ns, standstill=standstill)
    try:
        result = loop.run_until_complete(main)
    finally:
        _wind_down(loop)
    if loop.unhandled:
        first = loop.unhandled[0]
        raise Unhandled(f"{len(loop.unhandled)} unhandled, first: {first['message']}") from first.get("exception")
    return result


def _wind_down(loop: VirtualLoop) -> None:
    try:
        tasks = _unfinished(loop)
        for task in tasks:
            task.cancel()
        if tasks:
            loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        loop.close()


async def inline(work: Callable[[], None]) -> None:
    """Run a function at once: what a worker would have run beside the loop."""
    work()
