"""The way to one receiver: one call at a time, for the oldest alert that waits, and a bound on how many may wait."""

import asyncio
import heapq

Age = tuple[int, int]
"""When an alert was stored (Unix nanoseconds), and the sequence of its place in line: the lesser, the older."""

PATIENCE_S = 60.0
"""Seconds in line after which a receiver that answers is too slow for as many as wait."""

MOST_ENDED = 10_000
"""Alerts of which it is kept that their end was told."""


class Overrun(Exception):
    """More alerts wait for a receiver than may, and this is the oldest of them."""


class Line:
    """The way to a receiver.

    Args:
        places: Alerts that may wait while the receiver is down or slow.

    Attributes:
        open_ns: When the receiver wants to be called again (Unix nanoseconds); it is not called before.
    """

    def __init__(self, places: int) -> None:
        self.open_ns = 0
        self._places = places
        self._taken = False
        self._down = False
        # Those that were cancelled stay until they come first; ``_waiting`` counts the others.
        self._queue: list[tuple[Age, float, asyncio.Future[None]]] = []
        self._waiting = 0
        self._held: asyncio.TimerHandle | None = None
        self._ended: dict[str, Age] = {}

    def hold(self, seconds: float) -> None:
        """Give nobody a turn for so long, in seconds: an older alert may be on its way."""
        if self._held is not None:
            self._held.cancel()
        elif not seconds or self._taken:
            return
        self._taken = True
        self._held = asyncio.get_running_loop().call_later(seconds, self._release)

    async def turn(self, age: Age) -> None:
        """Wait for the turn, which is the caller's until :meth:`leave`.

        Raises:
            Overrun: it will not come.
        """
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[None] = loop.create_future()
        heapq.heappush(self._queue, (age, loop.time(), turn))
        self._waiting += 1
        self._go_on()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self._waiting -= 1
            elif turn.exception() is None:
                self.leave()
            raise

    def leave(self) -> None:
        """Let the next one have the turn."""
        self._taken = False
        self._go_on()

    def went_down(self) -> None:
        """Note that the receiver does not take what it is sent for the moment."""
        self._down = True
        self._give_way()

    def answered(self) -> None:
        """Note that the receiver answers."""
        self._down = False

    def took_end(self, alert: str, age: Age) -> None:
        """Note that the receiver was told that an alert is over."""
        self._ended.pop(alert, None)
        self._ended[alert] = age
        if len(self._ended) > MOST_ENDED:
            del self._ended[next(iter(self._ended))]

    def is_over(self, alert: str, age: Age) -> bool:
        """Whether the receiver was told that an alert is over by what is younger."""
        return age < self._ended.get(alert, age)

    def _release(self) -> None:
        self._held = None
        self.leave()

    def _go_on(self) -> None:
        if not self._taken and self._oldest() is not None:
            self._pop().set_result(None)
            self._taken = True
        self._give_way()

    def _give_way(self) -> None:
        """Refuse a turn to the oldest of those that wait, where a receiver that is down or slow has too many waiting.

        The latest stay: an end whose beginning a receiver was never told of does less harm than the other way round.
        """
        now = asyncio.get_running_loop().time()
        while self._waiting > self._places and (since := self._oldest()) is not None:
            if not self._down and now - since < PATIENCE_S:
                return
            self._pop().set_exception(Overrun)

    def _oldest(self) -> float | None:
        """Return since when the oldest waits (loop's time), None where nobody does."""
        while self._queue and self._queue[0][2].done():
            heapq.heappop(self._queue)
        return self._queue[0][1] if self._queue else None

    def _pop(self) -> asyncio.Future[None]:
        self._waiting -= 1
        return heapq.heappop(self._queue)[2]
