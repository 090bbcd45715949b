"""What has run out is named, by commands and over HTTP, and is called no bug."""

import contextlib
import errno
import io
import os
import resource
from pathlib import Path

import pytest

from deploy.cli.failures import explain
from deploy.cli.outcomes import BUG, NOT_REACHABLE
from events.exhaustion import exhausted
from tests.each import each

RUN_OUT = [
    (OSError(errno.EMFILE, "Too many open files"), "open files"),
    (OSError(errno.ENFILE, "Too many open files in system"), "open files of the machine"),
    (OSError(errno.ENOMEM, "Cannot allocate memory"), "memory"),
    (BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable"), "processes or threads"),
    (MemoryError(), "memory"),
    (RuntimeError("can't start new thread"), "processes or threads"),
]


@each(("error", "what"), RUN_OUT)
def test_what_has_run_out_is_named_with_what_to_do(error: Exception, what: str) -> None:
    line, status = explain(error)
    assert line.startswith(f"this command has run out of {what}")
    assert ": raise" in line or ": give" in line or ": close" in line
    assert status == NOT_REACHABLE


@each(
    "error",
    [
        ValueError("x"),
        RuntimeError("x"),
        OSError("x"),
        OSError(errno.ENOENT, "x"),
        BlockingIOError(errno.EAGAIN, "x", 3),
    ],
)
def test_other_errors_are_what_they_were(error: Exception) -> None:
    assert exhausted(error) == ""
    assert explain(error)[1] == BUG


def test_python_says_so_by_these_errors(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    held = os.open(tmp_path, os.O_RDONLY)
    resource.setrlimit(resource.RLIMIT_NOFILE, (held, before[1]))
    try:
        with pytest.raises(OSError, match="Too many open files") as caught:
            os.open(tmp_path, os.O_RDONLY)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        os.close(held)
    assert exhausted(caught.value).startswith("open files")


def test_a_full_pipe_that_does_not_block_is_none_of_these() -> None:
    reading, writing = os.pipe()
    try:
        os.set_blocking(writing, False)
        output = io.BufferedWriter(io.FileIO(writing, "wb", closefd=False), buffer_size=16)
        with pytest.raises(BlockingIOError) as caught:
            output.write(b"x" * (1 << 22))
        assert exhausted(caught.value) == ""
        with contextlib.suppress(BlockingIOError):
            output.close()
    finally:
        os.close(reading)
        os.close(writing)
