"""Why a request has no proper answer: its event is not stored, or not answered. Any of the services may raise these."""

from collections.abc import Iterator
from contextlib import contextmanager

from actors.gateway.wait_deadlines import WaitDeadline
from events.errors import Unavailable, UnknownOutcome


class NotAccepted(Exception):
    """An event was not stored in time. The message says why, or that it may still be stored, and what to do."""


@contextmanager
def refused_unless_stored(deadline: WaitDeadline, remedy: str = "send it again") -> Iterator[None]:
    """Raise NotAccepted for an event that the block could not store by its deadline; ``remedy`` says what to do."""
    try:
        yield
    except Unavailable as wrong:  # nothing was stored
        raise NotAccepted(f"{wrong}: {remedy}") from None
    except UnknownOutcome:
        raise NotAccepted(
            f"the broker has not confirmed this within {deadline.waited:.1f} s, and it may still be stored: {remedy}"
        ) from None


class NotReady(Exception):
    """This gateway has started, but does not serve yet; the message says what to do."""


class Unanswered(Exception):
    """An event is stored but was not answered in time; the message says where it is and what to do."""


class NoWorker(Exception):
    """An event is stored but no worker runs that would answer it; the message says where it is and what to do."""


class Undecided(Exception):
    """An event was stored, but what was decided about it cannot be told; the message says where to look."""
