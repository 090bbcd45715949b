"""Answers questions one after another, as long as somebody waits for them.

NATS's client hands a service its requests one by one, and keeps the others however many there are. So a crowd of slow
questions would be answered long after those who asked had given up, and whoever asks then would wait behind them all.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress

from nats.errors import Error as NatsError
from nats.micro.request import Request

from events.loggers import get_logger

MOST_WAITING = 64
"""The most questions of a kind that wait for their turn."""

PATIENCE_S = 4.5
"""Seconds that a question may wait for its turn: a gateway gives it up a little later."""

_logger = get_logger("neuraxis.ledger")


class QuestionQueue:
    """A handler of a NATS micro service; requests are answered while the block of :meth:`serving` runs.

    Args:
        answer: Answers a request.
        is_quick: Whether a request is answered as it comes, without a turn. Its answer must take no long time.
        key_of: Returns a key that requests with the same answer share; None for a request that is answered alone.
        most_waiting: See :data:`MOST_WAITING`.
        patience_s: See :data:`PATIENCE_S`.
    """

    def __init__(
        self,
        answer: Callable[[Request], Awaitable[None]],
        is_quick: Callable[[Request], bool] = lambda request: False,
        *,
        key_of: Callable[[Request], bytes | None] = lambda request: None,
        most_waiting: int = MOST_WAITING,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._answer = answer
        self._is_quick = is_quick
        self._key_of = key_of
        self._most_waiting = most_waiting
        self._patience_s = patience_s
        self._waiting: deque[tuple[float, Request]] = deque()
        self._arrived = asyncio.Event()

    async def __call__(self, request: Request) -> None:
        """Answer a quick request; put another into the queue, or refuse it."""
        if self._is_quick(request):
            await self._answer(request)
            return
        if len(self._waiting) >= self._most_waiting:
            await request.respond_error("503", f"{len(self._waiting)} such questions wait, as many as may: ask later")
            return
        self._waiting.append((asyncio.get_running_loop().time(), request))
        self._arrived.set()

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Answer the requests that come, within the block."""
        answering = asyncio.create_task(self._answer_all(), name="questions")
        try:
            yield
        finally:
            answering.cancel()
            await asyncio.wait((answering,))

    async def _answer_all(self) -> None:
        while True:
            await self._arrived.wait()
            while self._waiting:
                arrived_at, request = self._waiting.popleft()
                waited_s = asyncio.get_running_loop().time() - arrived_at
                with suppress(NatsError):  # the connection is closing: nobody can be answered
                    if waited_s <= self._patience_s:
                        await self._answer_one(self._with_others(request))
                    else:
                        await request.respond_error("503", f"it waited {waited_s:.1f} s behind others: ask again")
            self._arrived.clear()

    def _with_others(self, request: Request) -> Request:
        """Return a request together with those that wait behind it and ask the same, taken out of the queue.

        All of them came before their answer is made, so none of them is told anything old.
        """
        key = self._key_of(request)
        others = [each for each in self._waiting if key is not None and self._key_of(each[1]) == key]
        if not others:
            return request
        taken = {id(each) for each in others}
        self._waiting = deque(each for each in self._waiting if id(each) not in taken)
        return _Together(request, [each for _, each in others])

    async def _answer_one(self, request: Request) -> None:
        try:
            await self._answer(request)
        except NatsError:
            raise
        except Exception as wrong:  # a bug in one answer must not end the others
            _logger.exception("question_failed", subject=request.subject)
            await request.respond_error("500", type(wrong).__name__)


class _Together(Request):
    """Several requests with one question: what answers it answers all of them."""

    def __init__(self, first: Request, others: Sequence[Request]) -> None:
        super().__init__(first._msg)
        self._all = (first, *others)

    async def respond(self, data: bytes = b"", headers: dict[str, str] | None = None) -> None:
        """Send an answer to each."""
        for each in self._all:
            await each.respond(data, headers)

    async def respond_error(
        self, code: str, description: str, data: bytes = b"", headers: dict[str, str] | None = None
    ) -> None:
        """Send an error to each."""
        for each in self._all:
            await each.respond_error(code, description, data, headers)
