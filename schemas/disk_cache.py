"""Files that spare a process some work: each is read only if it is intact, and can be deleted at any time.

A file holds the SHA-256 of its content before the content, and is renamed into place when it is complete. So a reader
sees all of it or none, and a damaged one counts as missing. Nothing here raises: without the right to write, on a full
disk, or in a folder that others may write to, the work is simply done again.
"""

import os
import stat
import tempfile
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

_CHECKSUM_BYTES = sha256().digest_size

_MOST_FILES_PER_NAME = 8
"""Files that are kept under one name, the latest written."""


def cached(name: str, key: bytes, build: Callable[[], bytes]) -> bytes:
    """Return what ``build`` makes, from the user's cache folder if an earlier process left it there.

    The folder is ``neuraxis`` below ``XDG_CACHE_HOME``, by default ``~/.cache``.

    Args:
        name: What it is, for the file's name.
        key: All that it depends on, the code that makes it included.
        build: Makes it.
    """
    folder = _user_folder()
    if folder is None:
        return build()
    path = folder / f"{name}-{sha256(key).hexdigest()[:32]}"
    content = read_checked(path)
    if content is None:
        content = build()
        if write_checked(path, content):
            _drop_old(folder, name)
    return content


def _user_folder() -> Path | None:
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "neuraxis"
    except RuntimeError:  # no home folder
        return None


def _drop_old(folder: Path, name: str) -> None:
    with suppress(OSError):
        files = sorted(folder.glob(f"{name}-*"), key=lambda file: file.stat().st_mtime_ns, reverse=True)
        for file in files[_MOST_FILES_PER_NAME:]:
            file.unlink()


def read_checked(path: Path) -> bytes | None:
    """Return a file's content; None if there is none, if it is damaged, or if others than its owner may change it."""
    try:
        with path.open("rb") as file:
            if _may_be_foreign(os.fstat(file.fileno())):
                return None
            checksum, content = file.read(_CHECKSUM_BYTES), file.read()
    except OSError:
        return None
    return content if sha256(content).digest() == checksum else None


def write_checked(path: Path, content: bytes) -> bool:
    """Write a file for its owner alone, and its folder if that is missing; return whether it was written."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if _may_be_foreign(path.parent.stat()):
            return False
        descriptor, draft = tempfile.mkstemp(prefix=".draft-", dir=path.parent)  # made with mode 0600
    except OSError:
        return False
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(sha256(content).digest())
            file.write(content)
        os.replace(draft, path)
    except OSError:
        with suppress(OSError):
            os.unlink(draft)
        return False
    return True


def _may_be_foreign(status: os.stat_result) -> bool:
    """Whether others than the user of this process may have written a file or in a folder."""
    if not hasattr(os, "getuid"):
        return False
    return status.st_uid != os.getuid() or bool(status.st_mode & (stat.S_IWGRP | stat.S_IWOTH))
