"""Reading a file or a pipe line by line in a thread, never more than a few lines ahead of the event loop."""

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import BinaryIO

import msgspec

MAX_LINE_BYTES = 16 * 1024 * 1024
"""Longest line that is read whole: the largest input with every character escaped, and room for its layers."""

_LINES_AHEAD = 256
"""Lines that are read before the event loop takes them."""

BYTES_AHEAD = 2 * MAX_LINE_BYTES
"""Bytes of lines from which no further one is read until the event loop has taken some."""


class Line(msgspec.Struct, frozen=True):
    """A line of a file, its number from 1, and the bytes of the file up to its end; ``raw`` is None when too long."""

    number: int
    raw: bytes | None
    offset: int


async def lines_of(file: BinaryIO) -> AsyncIterator[Line]:
    """Yield a file's lines as they come. The caller closes the file."""
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[Line | OSError | None] = asyncio.Queue()
    ahead = _LinesAhead()

    def read() -> None:
        number = offset = 0
        error: OSError | None = None
        try:
            while ahead.has_room():
                number += 1
                raw, size = _next_line(file)
                if not size or ahead.stopped:
                    break
                offset += size
                ahead.add(raw)
                loop.call_soon_threadsafe(queue.put_nowait, Line(number, raw, offset))
        except OSError as wrong:
            error = wrong
        if not ahead.stopped:
            loop.call_soon_threadsafe(queue.put_nowait, error)

    # A daemon thread, not the loop's executor: a thread that waits for a pipe must not keep an interrupted command
    # alive.
    threading.Thread(target=read, name="feed reader", daemon=True).start()
    try:
        while (line := await queue.get()) is not None:
            if isinstance(line, OSError):
                raise line
            ahead.remove(line.raw)
            yield line
    finally:
        ahead.stop()


class _LinesAhead:
    """Counts the lines that were read and not taken yet, so that the reader waits while they are many, or long."""

    def __init__(self) -> None:
        self.stopped = False
        self._lines = self._bytes = 0
        self._changed = threading.Condition()

    def has_room(self) -> bool:
        """Wait until one more line may be read; return whether it still should be."""
        with self._changed:
            while not self.stopped and (self._lines >= _LINES_AHEAD or self._bytes >= BYTES_AHEAD):
                self._changed.wait()
            return not self.stopped

    def add(self, raw: bytes | None) -> None:
        """Note a line that was read."""
        with self._changed:
            self._lines, self._bytes = self._lines + 1, self._bytes + len(raw or b"")

    def remove(self, raw: bytes | None) -> None:
        """Note a line that was taken."""
        with self._changed:
            self._lines, self._bytes = self._lines - 1, self._bytes - len(raw or b"")
            self._changed.notify()

    def stop(self) -> None:
        """Have the reader end."""
        with self._changed:
            self.stopped = True
            self._changed.notify()


def _next_line(file: BinaryIO) -> tuple[bytes | None, int]:
    """Return the next line, None in place of one that is too long, and its size; size 0 is the end."""
    raw = file.readline(MAX_LINE_BYTES)
    size = len(raw)
    if size < MAX_LINE_BYTES or raw.endswith(b"\n"):
        return raw, size
    while raw and not raw.endswith(b"\n"):
        raw = file.readline(MAX_LINE_BYTES)
        size += len(raw)
    return None, size
