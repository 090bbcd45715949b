"""A disk of a few megabytes that a test may fill: a small tmpfs of its own, which only root may mount."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

_PAGE, _LARGE = 4096, 1024 * 1024


class SmallDisk:
    """A mounted disk of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._filler = folder / "filler"

    def fill(self) -> None:
        """Leave no room for another page; what a file's last page has left is its own."""
        descriptor = os.open(self._filler, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            for size in (_LARGE, _PAGE):
                with contextlib.suppress(OSError):
                    while os.write(descriptor, bytes(size)):
                        pass
        finally:
            os.close(descriptor)

    def clear(self) -> None:
        """Give back what was filled."""
        self._filler.unlink()

    def use_up_inodes(self) -> None:
        """Leave none for another file, and all the room there is in those that exist."""
        found = os.statvfs(self.folder)
        self._limit_inodes(found.f_files - found.f_ffree)

    def give_inodes(self) -> None:
        """Let files be made again."""
        self._limit_inodes(100_000)

    def _limit_inodes(self, count: int) -> None:
        subprocess.run(["mount", "-o", f"remount,nr_inodes={count}", str(self.folder)], check=True)

    def protect(self, on: bool) -> None:
        """Make the disk read-only, or writable again; a file that is open for writing keeps it from that."""
        subprocess.run(["mount", "-o", f"remount,{'ro' if on else 'rw'}", str(self.folder)], check=True)


def disk_refusal() -> str:
    """Return why no disk can be mounted here; empty where one can."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "only root on Linux may mount the small disk that this test fills"
    tried = ["unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"]
    found = subprocess.run(tried, capture_output=True, text=True, check=False)
    return f"no small disk can be mounted here: {found.stderr.strip()}" if found.returncode else ""


@contextlib.contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[SmallDisk]:
    """Mount a disk on a folder for the length of the block; skips the test where that is not allowed."""
    if why := disk_refusal():
        pytest.skip(why)
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=700", "tmpfs", str(folder)], check=True)
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
