"""A lock that another process keeps is not waited for without end."""

import fcntl
import os
from pathlib import Path

import pytest

from events.files.locking import lock


def test_one_at_a_time_has_the_lock_of_a_folder_and_who_waits_too_long_is_told(tmp_path: Path) -> None:
    first, second = (os.open(tmp_path, os.O_RDONLY) for _ in range(2))
    try:
        lock(first)
        with pytest.raises(TimeoutError, match=r"held its lock for 0\.1 s"):
            lock(second, 0.1)
        fcntl.flock(first, fcntl.LOCK_UN)
        lock(second, 0.1)
    finally:
        os.close(first)
        os.close(second)
