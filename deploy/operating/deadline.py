"""The deadline of a command, and what is known about its work when the time is up.

There is one deadline for a whole command: connecting, reading, sending and waiting share the same seconds, counted from
the start of the command. Code that sends something notes that here before it sends, and again when the broker has
stored it. So the error at the end can say what happened for certain, what may have happened, and how to find out.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from events.errors import LogError, Unavailable, UnknownOutcome

_MARGIN_S = 0.1
"""Seconds by which a step ends before the command, see :attr:`Deadline.left_for_step`."""


class Deadline:
    """A deadline ``seconds`` after ``begun``, a value of ``time.monotonic``; None means now.

    Attributes:
        reason: Why the broker stores nothing, if that is known; else empty.
    """

    def __init__(self, seconds: float, begun: float | None = None) -> None:
        self.reason = ""
        self._seconds = seconds
        self._begun = _now() if begun is None else begun
        self._servers = ""
        self._what = ""
        self._find = ""
        self._sent_at: float | None = None
        self._seq = 0
        self._then = ""

    @property
    def left(self) -> float:
        """Seconds that are left, never negative."""
        return max(0.0, self._seconds - self.waited)

    @property
    def left_for_step(self) -> float:
        """Seconds for a step whose own error says more than this deadline's: a moment less, so that it ends first."""
        return max(0.0, self.left - _MARGIN_S)

    @property
    def waited(self) -> float:
        """Seconds that have passed since the command began."""
        return _now() - self._begun

    @property
    def unconfirmed_s(self) -> float:
        """Seconds since something was sent that is not known to be stored; 0 if there is nothing of the kind."""
        return 0.0 if self._sent_at is None or self._seq else _now() - self._sent_at

    @property
    def is_nearly_over(self) -> bool:
        """Whether what was sent is stored and not answered, and the last quarter of the time has begun."""
        return bool(self._seq) and self.left <= self._seconds / 4

    def note_servers(self, servers: str) -> None:
        """Note which broker is used, for error messages."""
        self._servers = servers

    def note_sending(self, what: str, find: str) -> None:
        """Note that ``what`` is being sent; the text ``find`` says how to find out whether it was stored."""
        self._what, self._find, self._sent_at, self._seq = what, find, _now(), 0

    def note_stored(self, seq: int, then: str) -> None:
        """Note that it is stored, with its sequence; the text ``then`` says what has not come yet, and what to do."""
        self._seq, self._then, self.reason = seq, then, ""

    @asynccontextmanager
    async def enforced(self) -> AsyncIterator["Deadline"]:
        """End the block when the time is up.

        Raises:
            Unavailable: the time is up, or the broker cannot serve. Nothing was sent, or it is stored but not answered.
            UnknownOutcome: the time is up, or the broker cannot serve. What was sent may or may not be stored.
        """
        try:
            async with asyncio.timeout(self.left):
                yield self
        except TimeoutError:
            raise self.overdue() from None
        except (Unavailable, UnknownOutcome) as wrong:
            raise self._with_what_is_known(wrong) from wrong

    def overdue(self) -> LogError:
        """Return the error that says how far the work has come."""
        if self._sent_at is None and not self._servers:
            return Unavailable(
                f"{self.waited:.1f} s went by before a broker was asked: nothing was sent; give it longer"
            )
        if self._sent_at is None:
            return Unavailable(
                f"the broker at {self._servers} has not served this within {self.waited:.1f} s, and nothing was sent; "
                "`neuraxis doctor` tells more"
            )
        return self._in_the_log() if self._seq else self._in_doubt()

    def _with_what_is_known(self, wrong: LogError) -> LogError:
        if self._sent_at is None:
            return wrong
        if self._seq:
            if self.left == 0:
                return self._in_the_log()
            # The error of an exchange without an end begins with these words already.
            text = str(wrong)
            return Unavailable(text if text.startswith(self._what) else f"{self._stored()}, and then: {text}")
        if isinstance(wrong, UnknownOutcome):
            return self._in_doubt()
        return Unavailable(f"{self._what}: {wrong}{self._because()}")

    def _in_doubt(self) -> UnknownOutcome:
        return UnknownOutcome(
            f"{self._what} was sent, but the broker has not confirmed it after {self.waited:.1f} s: it may be stored, "
            f"or be stored later{self._because()}; {self._find}"
        )

    def _in_the_log(self) -> Unavailable:
        return Unavailable(f"{self._stored()}, but after {self.waited:.1f} s {self._then}{self._because()}")

    def _stored(self) -> str:
        return f"{self._what} is in the log (sequence {self._seq})"

    def _because(self) -> str:
        return f" ({self.reason})" if self.reason else ""


def _now() -> float:
    """Return the loop's time, which is ``time.monotonic`` outside of simulations."""
    try:
        return asyncio.get_running_loop().time()
    except RuntimeError:
        return time.monotonic()
