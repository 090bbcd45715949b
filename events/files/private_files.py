"""Files and folders with people's words or secrets: only their owner can open them, from the first byte on.

The mode is set when the file is made. If it were narrowed afterwards, others could open the file in between, and read
on.
"""

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO


def open_private(path: Path) -> BinaryIO:
    """Make a file that its owner alone may read and write, and open it for writing; one of that name is deleted first.

    Raises:
        OSError: it cannot be made there.
    """
    path.unlink(missing_ok=True)  # an existing file would keep its mode
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


def make_private_folder(path: Path) -> Sequence[Path]:
    """Make a folder and its missing parents, for their owner alone; existing folders are not changed.

    Return the folders that were made, the innermost first.

    Raises:
        OSError: it cannot be made.
    """
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    for folder in reversed(missing):
        folder.mkdir(mode=0o700, exist_ok=True)
    if not path.is_dir():
        raise NotADirectoryError(f"{path} is no folder")
    return missing


def remove_if_empty(folders: Sequence[Path]) -> None:
    """Remove folders that are still empty, the innermost first."""
    with suppress(OSError):  # something is in it
        for folder in folders:
            folder.rmdir()
