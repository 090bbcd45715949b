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


class Line(msgspec.Struct, frozen=True):
    """A line of a file, its number from 1, and the bytes of the file up to its end; ``raw`` is None when too long."""

    number: int
    raw: bytes | None
    offset: int


async def lines_of(file: BinaryIO) -> AsyncIterator[Line]:
    """Yield a file's lines as they come. The caller closes the file."""
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[Line | OSError | None] = asyncio.Queue()
    slots = threading.Semaphore(_LINES_AHEAD)
    stopped = threading.Event()

    def read() -> None:
        number = offset = 0
        error: OSError | None = None
        try:
            while True:
                slots.acquire()
                number += 1
                raw, size = _next_line(file)
                if not size or stopped.is_set():
                    break
                offset += size
                loop.call_soon_threadsafe(queue.put_nowait, Line(number, raw, offset))
        except OSError as wrong:
            error = wrong
        if not stopped.is_set():
            loop.call_soon_threadsafe(queue.put_nowait, error)

    # A daemon thread, not the loop's executor: a thread that waits for a pipe must not keep an interrupted command
    # alive.
    threading.Thread(target=read, name="feed reader", daemon=True).start()
    try:
        while (line := await queue.get()) is not None:
            if isinstance(line, OSError):
                raise line
            slots.release()
            yield line
    finally:
        stopped.set()
        slots.release()


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
