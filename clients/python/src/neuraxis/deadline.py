"""One deadline for a whole call without an event loop.

httpx limits each single read from a connection. So a call to a server that sends a byte now and then would last as long
as the server goes on. Here every connection that a client opens limits its reads and writes by the deadline of the call
for which they are made.

Nor does httpx limit the look-up of a server's name: a name server that does not answer delays it by half a minute. And
it gives each address of a server the whole time. Here the name is looked up first, in a thread that nothing waits for,
and its addresses share the time.
"""

import asyncio
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from ipaddress import ip_address
from queue import Empty, SimpleQueue
from typing import Any

import httpx

_PIECE = 64 * 1024
"""Most bytes that are written at once: a write lasts until the server has taken them all."""

_OPENED = (".connect_tcp.complete", ".connect_unix_socket.complete", ".start_tls.complete")
"""Ends of the names of the steps, as httpx traces them, that return an open connection."""

_CONNECTING = ".connect_tcp.started"
"""End of the name of the step in which httpx connects, with what ``info`` holds then, changes made here included."""

_Found = int | OSError
"""How many addresses a name has, or why they are not known."""


class Deadline:
    """The deadlines of a client's calls: each thread has one call at a time."""

    def __init__(self) -> None:
        self._of_thread = threading.local()

    @contextmanager
    def until(self, end: float) -> Iterator[None]:
        """Let this thread's reads and writes in the block end by a time of the monotonic clock."""
        self._of_thread.end = end
        try:
            yield
        finally:
            self._of_thread.end = None

    def watch(self, step: str, info: dict[str, Any]) -> None:
        """Limit the connection that a step of a request opens: the ``trace`` extension of httpx.

        Raises:
            httpx.ConnectError, httpx.ConnectTimeout: the server's name has no address, or none was found in time.
        """
        if step.endswith(_CONNECTING):
            self._look_up(info)
            return
        stream = info.get("return_value")
        if not step.endswith(_OPENED) or stream is None:
            return
        read: Callable[..., bytes] = stream.read
        write: Callable[..., None] = stream.write

        def limited_read(most_bytes: int, timeout: float | None = None) -> bytes:
            return read(most_bytes, timeout=self._limited(timeout))

        def limited_write(data: bytes, timeout: float | None = None) -> None:
            for at in range(0, len(data), _PIECE):
                write(data[at : at + _PIECE], timeout=self._limited(timeout))

        stream.read, stream.write = limited_read, limited_write

    def _look_up(self, info: dict[str, Any]) -> None:
        host, begun = info["host"], time.monotonic()
        limit = self._limited(info.get("timeout"))
        if _is_address(host):
            return
        found: SimpleQueue[_Found] = SimpleQueue()
        _look_ups.start(host, info["port"], found.put)
        try:
            count = _count_in(found.get(timeout=limit))
        except Empty:
            raise httpx.ConnectTimeout(f"the name {host} was not looked up in time") from None
        if limit is not None:
            info["timeout"] = max(0.001, limit - (time.monotonic() - begun)) / count

    def _limited(self, timeout: float | None) -> float | None:
        end: float | None = getattr(self._of_thread, "end", None)
        if end is None:
            return timeout
        left = end - time.monotonic()
        if left <= 0:
            raise httpx.ReadTimeout("the deadline of the call is over")
        return left if timeout is None else min(timeout, left)


async def look_up_first(step: str, info: dict[str, Any]) -> None:
    """Look a server's name up before httpx does: the ``trace`` extension of its client for asyncio.

    That one looks names up in threads that the end of the event loop waits for.

    Raises:
        httpx.ConnectError: the name has no address.
    """
    if not step.endswith(_CONNECTING) or _is_address(info["host"]):
        return
    loop = asyncio.get_running_loop()
    found: asyncio.Future[_Found] = loop.create_future()

    def settle(result: _Found) -> None:
        if not found.done():
            found.set_result(result)

    def tell(result: _Found) -> None:
        with suppress(RuntimeError):  # the loop was closed meanwhile
            loop.call_soon_threadsafe(settle, result)

    _look_ups.start(info["host"], info["port"], tell)
    _count_in(await found)


class _LookUps:
    """The look-ups under way. Whoever asks for a name that is being looked up waits for the same thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[tuple[str, int], list[Callable[[_Found], None]]] = {}

    def start(self, host: str, port: int, tell: Callable[[_Found], None]) -> None:
        """Call ``tell`` with the result, from another thread."""
        with self._lock:
            if (waiting := self._waiting.get((host, port))) is not None:
                waiting.append(tell)
                return
            self._waiting[host, port] = [tell]
        thread = threading.Thread(target=self._look_up, args=(host, port), name="neuraxis-look-up", daemon=True)
        try:
            thread.start()
        except RuntimeError as wrong:  # this process may have no more threads
            self._end(host, port, OSError(str(wrong)))

    def forget(self) -> None:
        """Forget what is under way: a forked process does not have the threads that look up."""
        self._lock, self._waiting = threading.Lock(), {}

    def _look_up(self, host: str, port: int) -> None:
        result: _Found
        try:
            result = len(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except OSError as wrong:
            result = wrong
        except UnicodeError as wrong:  # no name of a machine
            result = OSError(str(wrong))
        self._end(host, port, result)

    def _end(self, host: str, port: int, result: _Found) -> None:
        with self._lock:
            waiting = self._waiting.pop((host, port), [])
        for tell in waiting:
            tell(result)


_look_ups = _LookUps()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_look_ups.forget)


def _count_in(found: _Found) -> int:
    if isinstance(found, OSError):
        raise httpx.ConnectError(str(found)) from found
    return max(1, found)


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
