"""Has long questions about the log answered, each by a process of its own that ends with whoever asked.

The process gets its question over a socket that it inherits: how to reach the broker stands in no argument and no
variable. It is killed at its deadline, and when whoever waits for it is cancelled.
"""

import asyncio
import socket
import sys

import msgspec

from actors.gateway.external_events import InvalidField
from actors.gateway.http.readiness_checks import without_places
from actors.gateway.http.scopes import NotFound
from actors.gateway.wait_deadlines import WaitDeadlines, deadline_within
from deploy.processes.supervising.child import end, spawn
from events.errors import Unavailable

AT_ONCE = 2
"""Questions that are answered at once, at most: each takes a processor for as long as it takes."""

WAITING = 4
"""Questions that wait for their turn, at most."""

MOST_BYTES = 8_000_000
"""Bytes of an answer, at most."""

_PIECE = 1 << 16


class Examiner:
    """Answers questions, a few at once.

    Args:
        within_s: Seconds that a question may take, from the moment that it is asked.
    """

    def __init__(self, within_s: float) -> None:
        self._within_s = within_s
        self._terms = WaitDeadlines()
        self._places = asyncio.Semaphore(AT_ONCE)
        self._asked = 0

    def hurry(self, seconds: float) -> None:
        """Let those who wait do so for ``seconds`` more at most: this process is to stop."""
        self._terms.hurry(seconds)

    async def ask(self, asked: bytes) -> bytes:
        """Return the answer to a question (``deploy.replaying.questions.Asked``, as JSON), as JSON.

        Raises:
            InvalidField: the question is wrong.
            NotFound: what it names is not there.
            Unavailable: the log cannot be read, too many ask, or the time is up.
        """
        if self._asked >= AT_ONCE + WAITING:
            raise Unavailable(f"{self._asked} such questions are being answered, as many as may be: ask again later")
        term = deadline_within(self._within_s)
        self._asked += 1
        try:
            async with self._terms.deadline(term), self._places:
                return _body_of(await _answer(asked))
        except TimeoutError:
            raise Unavailable(
                f"there is no answer within {term.waited:.1f} s: ask again, or the command line, which has no deadline"
            ) from None
        finally:
            self._asked -= 1


async def _answer(asked: bytes) -> bytes:
    ours, theirs = socket.socketpair()
    with theirs:
        try:
            # -P: a folder named `deploy` where the gateway stands must not be taken for ours.
            command = (sys.executable, "-P", "-m", "deploy.processes.examiner_child", str(theirs.fileno()))
            process = await spawn(command, keep_fds=(theirs.fileno(),))
        except BaseException:
            ours.close()
            raise
    reader, writer = await asyncio.open_connection(sock=ours)
    try:
        writer.write(asked)
        writer.write_eof()
        parts, size = [], 0
        while part := await reader.read(_PIECE):
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
    body: msgspec.Raw


class _Unanswered(msgspec.Struct, tag="Unanswered"):
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
    raise NotFound(without_places(decoded.message)) if decoded.why == "absent" else Unavailable(decoded.message)
