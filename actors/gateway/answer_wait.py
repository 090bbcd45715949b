"""Waits for an answer from the log, and stops early when no worker runs that could give it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from actors.gateway.wait_deadlines import WaitDeadline, WaitDeadlines
from events.decoding import Recorded, Unreadable
from events.errors import NotPermitted, Unavailable, UnknownOutcome

T = TypeVar("T")

CHECK_INTERVAL_S = 0.25
"""Seconds between two checks whether a worker runs that could answer."""


class NoEnd(Unavailable):
    """What was sent is in the log, but the awaited event has not come in time. It may come later.

    ``unserved_stage`` names the stage that nobody serves and that would have to run; empty if that is not known.
    """

    def __init__(self, message: str, *, unserved_stage: str = "") -> None:
        super().__init__(message)
        self.unserved_stage = unserved_stage


class UnreadableEnd(NoEnd):
    """What is waited for is in the log, but this release cannot read it: a later release wrote it, or it is damaged."""

    code = "unreadable_end"

    @classmethod
    def of(cls, what: str, found: Unreadable) -> "UnreadableEnd":
        """Return the error about an event; ``what`` says what the event did: ``exchange NAME has ended``."""
        return cls(f"{what} (sequence {found.stored.seq}), by an event that this process cannot read: {found.detail}")


def is_answer_to(cause: str, recorded: Recorded) -> bool:
    """Return whether an event was caused by the one with this id; for ``Client.first``."""
    return recorded.envelope.cause == cause


def assume_served() -> str:
    """Assume that a worker runs which answers; for callers that cannot know."""
    return ""


async def await_answer(
    answer: Awaitable[T],
    what: str,
    deadlines: WaitDeadlines,
    deadline: WaitDeadline,
    unserved: Callable[[], str] = assume_served,
    hint: str = "",
) -> T:
    """Wait for an answer to what was stored; on timeout the task that reads it is cancelled, and has ended on return.

    Args:
        answer: What is waited for.
        what: What is being answered, for the message: ``exchange NAME``.
        deadlines: Those of all requests of this process: they end early when it stops.
        deadline: The one of this request: how long to wait.
        unserved: Returns the stage that would answer if nobody serves it; empty while somebody may.
        hint: How the user can see the answer once a worker runs, for the message.

    Raises:
        NoEnd: it did not come in time, or no worker runs that would give it.
    """
    waiting = asyncio.ensure_future(answer)
    try:
        async with deadlines.deadline(deadline), deadlines.cancelled_at_close(waiting):
            while not (await asyncio.wait((waiting,), timeout=CHECK_INTERVAL_S))[0]:
                if stage := unserved():
                    raise NoEnd(
                        f"{what} is in the log and nobody ends it: nobody serves {stage}; it ends when a worker "
                        f"does{hint}",
                        unserved_stage=stage,
                    )
        return waiting.result()
    except TimeoutError:
        if grace_s := deadline.stall_grace_s:  # this process stood still: the answer may have come meanwhile
            await asyncio.wait((waiting,), timeout=grace_s)
        if waiting.done() and not waiting.cancelled():
            return waiting.result()
        if deadlines.is_stopping:
            message = f"{what} has no end yet, and this process stops: try again"
        else:
            message = (
                f"{what} has no end after {deadline.waited:.1f} s: are the workers running? `neuraxis doctor` tells"
            )
        raise NoEnd(message) from None
    finally:
        if not waiting.done():
            waiting.cancel()
            await asyncio.wait((waiting,))


async def retry_until_reachable(reading: Callable[[], Awaitable[T]]) -> T:
    """Repeat a read through outages of the broker until it succeeds; the caller sets the deadline.

    Raises:
        NotPermitted: the login may not read this, which no wait changes.
    """
    while True:
        try:
            return await reading()
        except NotPermitted:
            raise
        except (Unavailable, UnknownOutcome):  # a read without an answer changes nothing: it may be repeated
            await asyncio.sleep(CHECK_INTERVAL_S)
