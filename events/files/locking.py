"""A lock of the kernel's on a file or folder, so that one process at a time changes something."""

import fcntl
import time
from contextlib import suppress

LOCK_TIMEOUT_S = 5.0
"""Seconds to wait for a lock. A process holds one for some milliseconds, unless it stands still."""

_POLL_INTERVAL_S = 0.02


def lock(descriptor: int, within_s: float = LOCK_TIMEOUT_S) -> None:
    """Lock an open file or folder until its descriptor is closed.

    Raises:
        TimeoutError: another process kept the lock for all of the time.
        OSError: the file system has no such locks.
    """
    end = time.monotonic() + within_s
    while True:
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        if time.monotonic() >= end:
            raise TimeoutError(f"another process has held its lock for {within_s:g} s: see whether one stands still")
        time.sleep(_POLL_INTERVAL_S)
