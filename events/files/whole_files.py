"""Files that are written completely or not at all: until the new content is complete, the old file stays."""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

PUBLIC, PRIVATE = 0o666, 0o600
"""Modes of new files: as the umask allows, and for their owner alone."""


def flush(path: Path) -> None:
    """Flush a file, or the names in a folder, to disk; raises OSError. Some file systems cannot flush folders."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError:
        if not path.is_dir():
            raise


def replace_file(path: Path, content: bytes, mode: int = PUBLIC, owner: os.stat_result | None = None) -> None:
    """Write one file, in place of an old one; see :func:`replace_files`."""
    replace_files({path: content}, {path: mode}, owner)


def replace_files(
    contents: Mapping[Path, bytes], modes: Mapping[Path, int] = {}, owner: os.stat_result | None = None
) -> None:
    """Write files, each in place of an old one; on a full disk none of them is changed, and nothing new stays.

    Args:
        contents: What each file is to hold; their folders exist.
        modes: Modes of those that are not :data:`PUBLIC`.
        owner: Whose user and group they are to have, if not those of this process.

    Raises:
        OSError: one cannot be written; ``filename`` names it.
    """
    drafts: dict[Path, Path] = {}
    path = None
    try:
        for path, content in contents.items():
            draft = path.with_name(f".{path.name}.{os.getpid()}")
            drafts[path] = draft
            draft.unlink(missing_ok=True)  # a link there would lead this process to a file of its own
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, modes.get(path, PUBLIC))
            with os.fdopen(descriptor, "wb") as file:
                if owner is not None:
                    os.fchown(descriptor, owner.st_uid, owner.st_gid)
                file.write(content)
        for path, draft in drafts.items():
            draft.replace(path)
    except OSError as wrong:
        raise OSError(wrong.errno, wrong.strerror, str(path)) from wrong  # on a full disk the error names no file
    finally:
        for draft in drafts.values():
            with suppress(OSError):  # most have their final name by now
                draft.unlink()
