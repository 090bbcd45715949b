"""One deadline for a whole call without an event loop.

httpx limits each single read from a connection. So a server that sends a byte now and then, in its headers for example,
would be waited for as long as it goes on. Here every connection that a client opens limits its reads and writes by the
deadline of the call for which they are made.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx

_PIECE = 64 * 1024
"""Most bytes that are written at once: a write lasts until the server has taken them all."""

_OPENED = (".connect_tcp.complete", ".connect_unix_socket.complete", ".start_tls.complete")
"""Ends of the names of the steps, as httpx traces them, that return an open connection."""


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

    def watch(self, step: str, info: Mapping[str, Any]) -> None:
        """Limit the connection that a step of a request has opened: the ``trace`` extension of httpx."""
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

    def _limited(self, timeout: float | None) -> float | None:
        end: float | None = getattr(self._of_thread, "end", None)
        if end is None:
            return timeout
        left = end - time.monotonic()
        if left <= 0:
            raise httpx.ReadTimeout("the deadline of the call is over")
        return left if timeout is None else min(timeout, left)
