"""Writing the files of a deployment into a folder: all of them, or none."""

from collections.abc import Mapping
from pathlib import Path

from events.files.private_files import remove_if_empty
from events.files.whole_files import PRIVATE, replace_files

Files = Mapping[str, bytes]
"""Path below the folder -> content."""

SECRET = frozenset({"neuraxis.toml", "values.yaml"})
"""Names of the files that have the configuration in them, and so whatever secrets it has: their owner's alone."""

HEADER = "Written by `neuraxis deploy {command}` {version}. Changes here are lost when it is run again with --force."


class FilesExist(Exception):
    """Files that would be written are there already, with other content; the message names them."""

    code = "files_exist"


def write_files(folder: Path, files: Files, *, force: bool) -> tuple[Path, ...]:
    """Write files below ``folder``, which is made if need be; return their paths in order.

    A file that is there with the same content is left alone. What may hold secrets is written for its owner alone.

    Raises:
        FilesExist: without ``force``, one is there with other content; then none is written.
        OSError: one cannot be written; then none is.
    """
    paths = {folder / name: content for name, content in sorted(files.items())}
    changed = {path: content for path, content in paths.items() if not _holds(path, content)}
    if not force and (there := [str(path) for path in changed if path.exists()]):
        raise FilesExist(
            f"{', '.join(there)} {'is' if len(there) == 1 else 'are'} there already, with other content: "
            "write into another folder, or replace with --force"
        )
    made: list[Path] = []
    try:
        for parent in {path.parent: None for path in changed}:
            missing = [each for each in (parent, *parent.parents) if not each.exists()]
            made = [*missing, *made]
            parent.mkdir(parents=True, exist_ok=True)
        replace_files(changed, modes={path: PRIVATE for path in changed if path.name in SECRET})
    except OSError:
        remove_if_empty(made)
        raise
    return tuple(paths)


def _holds(path: Path, content: bytes) -> bool:
    return path.is_file() and path.read_bytes() == content
