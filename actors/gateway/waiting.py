"""Waiting for what the log will say, for no longer than somebody may say it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from actors.gateway.terms import Term, Terms
from events.codec import Recorded
from events.errors import Unavailable

T = TypeVar("T")

LOOK_S = 0.25
"""Seconds between two looks whether somebody still may answer."""


class NoEnd(Unavailable):
    """What was sent is in the log, and what was waited for has not come in time: it may come later.

    ``lacking`` says who would have to run for it to come; empty where that is not known.
    """

    def __init__(self, message: str, *, lacking: str = "") -> None:
        super().__init__(message)
        self.lacking = lacking


def is_answer_to(cause: str, recorded: Recorded) -> bool:
    """Whether an event was led to by the one of this id: for ``Client.first``."""
    return recorded.envelope.cause == cause


def served() -> str:
    """Take it that somebody answers: what a caller says who cannot know."""
    return ""


async def waited_for(
    answer: Awaitable[T], what: str, terms: Terms, term: Term, unserved: Callable[[], str] = served, then: str = ""
) -> T:
    """Wait for an answer to what was stored; it is cancelled, and its end awaited, where it comes too late.

    Args:
        answer: What is waited for.
        what: What it answers, for the message: ``exchange NAME``.
        terms: Those of the process.
        term: How long to wait.
        unserved: Says who would give the answer and does not run, empty while somebody may.
        then: What tells of it once a worker runs, for the message.

    Raises:
        NoEnd: it did not come in time, or nobody runs who would give it.
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
    """Read, through outages of the broker, until it is done: its caller keeps the time."""
    while True:
        try:
            return await reading()
        except Unavailable:
            await asyncio.sleep(LOOK_S)
