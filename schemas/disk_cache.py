"""Files that spare a process some work: each is read only if it is intact, and can be deleted at any time.

A file holds the SHA-256 of its content before the content, and is renamed into place when it is complete. So a reader
sees all of it or none, and a damaged one is as good as none. Nothing here raises: without the right to write, on a full
disk, or in a folder that others may write to, the work is simply done again.
"""

import os
import stat
import tempfile
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

_CHECKSUM_BYTES = sha256().digest_size


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
        number, draft = tempfile.mkstemp(prefix=".draft-", dir=path.parent)  # made with mode 0600
    except OSError:
        return False
    try:
        with os.fdopen(number, "wb") as file:
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
