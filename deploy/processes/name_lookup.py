"""Looks up names of machines in threads that nothing waits for.

A name server that does not answer holds a look-up for twenty seconds and more, and nothing can end it. The loops of
asyncio and uvloop look names up in threads that the end of the process waits for. So a command that gives up after the
five seconds it was given would end only with the look-up. Here the threads are daemons: no process waits for them.
"""

import asyncio
import errno
import socket
from contextlib import suppress
from threading import Thread
from typing import Any

Found = list[tuple[Any, ...]]
"""Addresses as ``socket.getaddrinfo`` returns them."""

_Question = tuple[Any, ...]


class NameLookups:
    """The look-ups of one event loop. Equal ones at the same time share one thread.

    So an outage of the name server costs a thread for each name, however often somebody tries to connect.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._under_way: dict[_Question, asyncio.Future[Found]] = {}

    async def find(self, *question: Any) -> Found:
        """Return the addresses of a name; the arguments are those of ``socket.getaddrinfo``.

        Raises:
            OSError: there are none, or the name servers did not tell.
        """
        answer = self._under_way.get(question)
        if answer is None:
            answer = self._loop.create_future()
            thread = Thread(target=self._look_up, args=(question, answer), name="name-lookup", daemon=True)
            try:
                thread.start()
            except RuntimeError as wrong:  # no thread is left now; whoever asks again must not wait for this one
                raise OSError(errno.EAGAIN, str(wrong)) from wrong
            self._under_way[question] = answer
            answer.add_done_callback(lambda done: self._note_end(question, done))
        return await asyncio.shield(answer)

    def _look_up(self, question: _Question, answer: "asyncio.Future[Found]") -> None:
        error, found = None, Found()
        try:
            found = socket.getaddrinfo(*question)
        except Exception as wrong:
            error = wrong
        with suppress(RuntimeError):  # the loop was closed meanwhile
            self._loop.call_soon_threadsafe(_settle, answer, found, error)

    def _note_end(self, question: _Question, done: "asyncio.Future[Found]") -> None:
        self._under_way.pop(question, None)
        if not done.cancelled():
            done.exception()  # nobody may wait any more, and asyncio would report that nobody took it


def _settle(answer: "asyncio.Future[Found]", found: Found, error: Exception | None) -> None:
    if answer.done():
        return
    if error is None:
        answer.set_result(found)
    else:
        answer.set_exception(error)
