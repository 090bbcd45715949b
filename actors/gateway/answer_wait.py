"""Waits for an answer from the log, and stops early when no worker runs that could give it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from actors.gateway.wait_deadlines import WaitDeadline, WaitDeadlines
from events.codec import Recorded
from events.errors import Unavailable

T = TypeVar("T")

LOOK_S = 0.25
"""Seconds between two checks whether a worker runs that could answer."""


class NoEnd(Unavailable):
    """What was sent is in the log, but the awaited event has not come in time. It may come later.

    ``lacking`` says which stage would have to run for it to come; empty where that is not known.
    """

    def __init__(self, message: str, *, lacking: str = "") -> None:
        super().__init__(message)
        self.lacking = lacking


def is_answer_to(cause: str, recorded: Recorded) -> bool:
    """Whether an event was caused by the one with this id; for ``Client.first``."""
    return recorded.envelope.cause == cause


def served() -> str:
    """Assume that a worker answers; for callers that cannot know."""
    return ""


async def waited_for(
    answer: Awaitable[T],
    what: str,
    terms: WaitDeadlines,
    term: WaitDeadline,
    unserved: Callable[[], str] = served,
    then: str = "",
) -> T:
    """Wait for an answer to what was stored; on timeout the answer is cancelled, and its end is awaited.

    Args:
        answer: What is waited for.
        what: What is being answered, for the message: ``exchange NAME``.
        terms: The deadlines of the process.
        term: How long to wait.
        unserved: Returns which worker would give the answer but does not run; empty while one may.
        then: How the user can see the answer once a worker runs, for the message.
    Raises:
        NoEnd: it did not come in time, or no worker runs that would give it.
    """
    waiting = asyncio.ensure_future(answer)
    try:
        async with terms.deadline(term), terms.cancelled_at_close(waiting):
            while not (await asyncio.wait((waiting,), timeout=LOOK_S))[0]:
                if lacking := unserved():
                    raise NoEnd(
                        f"{what} is in the log and nobody ends it: nobody serves {lacking}; it ends when a worker "
                        f"does{then}",
                        lacking=lacking,
                    )
        return waiting.result()
    except TimeoutError:
        if waiting.done() and not waiting.cancelled():
            return waiting.result()
        if terms.hurried:
            message = f"{what} has no end yet, and this process stops: try again"
        else:
            message = f"{what} has no end after {term.waited:.1f} s: are the workers running? `neuraxis doctor` tells"
        raise NoEnd(message) from None
    finally:
        if not waiting.done():
            waiting.cancel()
            await asyncio.wait((waiting,))


async def persistently(reading: Callable[[], Awaitable[T]]) -> T:
    """Repeat a read through outages of the broker until it succeeds; the caller sets the deadline."""
    while True:
        try:
            return await reading()
        except Unavailable:
            await asyncio.sleep(LOOK_S)
