"""Answers long questions about the log, each in a child process of its own.

The child gets its question over a socket that it inherits, so the broker's login is in no argument and no environment
variable. It is killed at its deadline, and when the request that waits for it is cancelled.
"""

import asyncio
import socket
import sys

import msgspec

from actors.gateway.external_events import InvalidField
from actors.gateway.http.check_results import without_locations
from actors.gateway.http.scopes import NotFound
from actors.gateway.wait_deadlines import WaitDeadlines, deadline_within
from deploy.processes.supervising.child import end, spawn
from events.errors import Unavailable
from events.exhaustion import exhausted

AT_ONCE = 2
"""The most questions that are answered at once: each keeps a processor busy."""

WAITING = 4
"""The most questions that wait for their turn."""

MOST_BYTES = 8_000_000
"""The most bytes of an answer."""

_READ_BYTES = 1 << 16


class Examiner:
    """Answers questions, a few at once.

    Args:
        within_s: Seconds within which a question is answered, the wait for its turn included.
    """

    def __init__(self, within_s: float) -> None:
        self._within_s = within_s
        self._deadlines = WaitDeadlines()
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._open_questions = 0

    def shorten_waits(self, seconds: float) -> None:
        """Bring the deadlines of all open questions to ``seconds`` from now at most: this process is about to stop."""
        self._deadlines.shorten(seconds)

    async def ask(self, question: bytes) -> bytes:
        """Return the answer to a question (``deploy.replaying.log_questions.Asked``, as JSON), as JSON.

        Raises:
            InvalidField: the question is wrong.
            NotFound: the log does not hold what it names.
            Unavailable: the log cannot be read, too many questions are open, or the time is up.
        """
        if self._open_questions >= AT_ONCE + WAITING:
            raise Unavailable(
                f"{self._open_questions} such questions are being answered, as many as may be: ask again later"
            )
        deadline = deadline_within(self._within_s)
        self._open_questions += 1
        try:
            async with self._deadlines.deadline(deadline), self._turns:
                return _body_of(await _answer(question))
        except OSError as wrong:  # a deadline's TimeoutError included
            if what := exhausted(wrong):
                raise Unavailable(f"no process can be started for it: the gateway has run out of {what}") from wrong
            if not isinstance(wrong, TimeoutError):
                raise
            raise Unavailable(
                f"there is no answer within {deadline.waited:.1f} s: ask again, or the command line, which has no "
                "deadline"
            ) from None
        finally:
            self._open_questions -= 1


async def _answer(question: bytes) -> bytes:
    ours, theirs = socket.socketpair()
    with theirs:
        try:
            # -P: a folder named `deploy` in the gateway's working folder must not be imported instead of ours.
            command = (sys.executable, "-P", "-m", "deploy.processes.examiner_child", str(theirs.fileno()))
            process = await spawn(command, keep_fds=(theirs.fileno(),))
        except BaseException:
            ours.close()
            raise
    reader, writer = await asyncio.open_connection(sock=ours)
    try:
        writer.write(question)
        writer.write_eof()
        parts, size = [], 0
        while part := await reader.read(_READ_BYTES):
            parts.append(part)
            size += len(part)
            if size > MOST_BYTES:
                raise InvalidField(
                    "path", f"the answer has more than {MOST_BYTES:,} bytes: ask for less of it, by its path"
                )
        return b"".join(parts)
    finally:
        writer.close()
        await end(process, 0.0)


class _Answered(msgspec.Struct, tag="Answered"):
    """The child's answer, as JSON."""

    body: msgspec.Raw


class _Unanswered(msgspec.Struct, tag="Unanswered"):
    """Why the child has no answer: a ``field`` is ``wrong``, what is named is ``absent``, or the log is ``away``."""

    why: str
    message: str
    field: str = ""


def _body_of(answer: bytes) -> bytes:
    if not answer:
        raise Unavailable("the process that was to answer ended: the gateway's log tells why; ask again")
    decoded = msgspec.json.decode(answer, type=_Answered | _Unanswered)
    if isinstance(decoded, _Answered):
        return bytes(decoded.body)
    if decoded.why == "wrong":
        raise InvalidField(decoded.field, decoded.message)
    raise NotFound(without_locations(decoded.message)) if decoded.why == "absent" else Unavailable(decoded.message)
