"""The ways to receivers: for each one call at a time, for the oldest alert that waits; and how many may wait in all."""

import asyncio
import heapq

Age = tuple[int, int]
"""When an alert was stored (Unix nanoseconds), and the sequence of its place in line: the lesser, the older."""

DOWN_S = 5.0
"""Seconds for which a receiver has taken nothing after which it is down."""

PATIENCE_S = 15.0
"""Seconds that the next in line has waited for after which a receiver that answers is too slow for as many as wait."""

MOST_ENDED = 10_000
"""Alerts of which it is kept that their end was told."""


class Overrun(Exception):
    """More alerts wait for a receiver than may, and this is the oldest of them."""


class Capacity:
    """The room in which alerts wait for all receivers.

    Where it is full, receivers that are down or slow have no more than equal shares of it.

    Args:
        places: Alerts that may wait, over all receivers.
    """

    def __init__(self, places: int) -> None:
        self._places = places
        self._lines: list[Queue] = []

    def line(self) -> "Queue":
        """Make the way to one more receiver."""
        made = Queue(self)
        self._lines.append(made)
        return made

    def give_way(self) -> None:
        """Refuse a turn to the oldest of the longest lines, until there is room or no line has more than its share.

        The latest stay: an end whose beginning a receiver was never told of does less harm than the other way round.
        """
        share = max(1, self._places // len(self._lines))
        while sum(len(line) for line in self._lines) > self._places:
            lagging = [line for line in self._lines if len(line) > share and line.lags]
            if not lagging:
                return
            max(lagging, key=len).refuse()


class Queue:
    """The way to a receiver; made by :meth:`Capacity.line`.

    Attributes:
        open_at: When the receiver wants to be called again (loop's time); it is not called before.
    """

    def __init__(self, room: Capacity) -> None:
        self.open_at = 0.0
        self._room = room
        self._taken = False
        self._failing_since: float | None = None
        # Those that were cancelled stay until they come first; ``_waiting`` counts the others.
        self._queue: list[tuple[Age, float, asyncio.Future[None]]] = []
        self._waiting = 0
        self._held: asyncio.TimerHandle | None = None
        self._ended: dict[str, Age] = {}

    def __len__(self) -> int:
        return self._waiting

    @property
    def lags(self) -> bool:
        """Whether the receiver is down, or so slow that the next in line has waited for long."""
        now, since, failing = asyncio.get_running_loop().time(), self._oldest(), self._failing_since
        is_down = failing is not None and now - failing >= DOWN_S
        return is_down or (since is not None and now - since >= PATIENCE_S)

    def refuse(self) -> None:
        """Refuse the oldest a turn."""
        if self._oldest() is not None:
            self._pop().set_exception(Overrun)

    def hold(self, seconds: float) -> None:
        """Give nobody a turn for so long, in seconds: an older alert may be on its way."""
        if self._held is not None:
            self._held.cancel()
        elif not seconds or self._taken:
            return
        self._taken = True
        self._held = asyncio.get_running_loop().call_later(seconds, self._release)

    async def admit(self, age: Age) -> None:
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

    def failed(self) -> None:
        """Note that the receiver does not take what it is sent for the moment."""
        if self._failing_since is None:
            self._failing_since = asyncio.get_running_loop().time()
        self._room.give_way()

    def answered(self) -> None:
        """Note that the receiver answers."""
        self._failing_since = None

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
        self._room.give_way()

    def _oldest(self) -> float | None:
        """Return since when the oldest waits (loop's time), None where nobody does."""
        while self._queue and self._queue[0][2].done():
            heapq.heappop(self._queue)
        return self._queue[0][1] if self._queue else None

    def _pop(self) -> asyncio.Future[None]:
        self._waiting -= 1
        return heapq.heappop(self._queue)[2]
