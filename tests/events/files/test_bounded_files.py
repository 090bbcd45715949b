"""Files that somebody names: read within a size, and a pipe within a time."""

import os
import threading
import time
from pathlib import Path

import pytest

from events.files.bounded_files import read_bounded


def test_a_file_is_read_up_to_its_limit_and_no_further(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_bytes(b"1234")
    assert read_bounded(file, 4) == b"1234"
    with pytest.raises(OSError, match="more than 3 bytes"):
        read_bounded(file, 3)
    with pytest.raises(OSError, match="more than 1,000 bytes"):
        read_bounded(Path("/dev/zero"), 1_000)
    with pytest.raises(FileNotFoundError):
        read_bounded(tmp_path / "none", 4)


def test_a_pipe_is_read_when_it_is_written_and_not_waited_for_without_end(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    begun = time.monotonic()
    with pytest.raises(OSError, match=r"nobody has written it to its end within 0\.2 s"):
        read_bounded(pipe, 9, wait_s=0.2)
    assert time.monotonic() - begun < 5
    other = tmp_path / "other"
    os.mkfifo(other)
    threading.Thread(target=other.write_bytes, args=(b"written",), daemon=True).start()
    assert read_bounded(other, 9) == b"written"
