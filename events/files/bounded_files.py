"""Reading files that a person or a configuration names, within limits: one may be a pipe, or a device without end."""

import stat
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from errno import EFBIG, ENODATA
from pathlib import Path
from threading import Thread

MOST_SECRET_BYTES = 1024 * 1024
"""Most bytes of a file that holds keys, a login or an address."""

PIPE_WAIT_S = 10.0
"""Seconds in which what a pipe or a device holds must have been written."""


def read_bounded(path: Path, most: int, wait_s: float = PIPE_WAIT_S) -> bytes:
    """Return the content of a file.

    Args:
        path: The file; a pipe or a device is read to its end, too.
        most: Most bytes that it may have.
        wait_s: Seconds within which a pipe must be written to its end. An ordinary file has no such limit.

    Raises:
        OSError: it cannot be read; it has more bytes (``EFBIG``); or nobody has written it to its end in time
            (``ENODATA``). Its ``strerror`` says what to do.
    """
    if stat.S_ISREG(path.stat().st_mode):
        content = _read(path, most)
    else:
        reading: Future[bytes] = Future()
        # Nothing can end the opening or the reading of a pipe: the thread is left behind.
        Thread(target=_run, args=(reading, path, most), name="file reader", daemon=True).start()
        try:
            content = reading.result(wait_s)
        except FutureTimeout:
            what = f"nobody has written it to its end within {wait_s:g} s: name a file that is complete"
            raise OSError(ENODATA, what, str(path)) from None
    if len(content) > most:
        raise OSError(EFBIG, f"it has more than {most:,} bytes: name another file", str(path))
    return content


def _run(reading: "Future[bytes]", path: Path, most: int) -> None:
    try:
        reading.set_result(_read(path, most))
    except BaseException as wrong:
        reading.set_exception(wrong)


def _read(path: Path, most: int) -> bytes:
    with path.open("rb") as file:
        return file.read(most + 1)
