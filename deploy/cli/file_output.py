"""Writing a file that was named on the command line: completely or not at all, and readable by its owner alone."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO

import click

from deploy.cli.outcomes import WrongUse


def write_file(path: Path, content: bytes) -> None:
    """Write ``content`` to a file, in place of an old one; see :func:`writing_file`."""
    with writing_file(str(path)) as file:
        file.write(content)


@contextmanager
def writing_file(name: str) -> Iterator[IO[bytes]]:
    """Open a file for writing that replaces the named one at the end of the block. The name ``-`` means stdout.

    Only its owner may read it, from its first byte on, even if others could read the old one: people's words may be in
    it. A pipe or a device is written to directly.

    Raises:
        WrongUse: the file cannot be written.
    """
    if name == "-":
        with click.open_file(name, "wb") as stdout:
            yield stdout
        return
    path = Path(name)
    try:
        if path.exists() and not path.is_file():
            with path.open("wb") as device:
                yield device
            return
        path = Path(os.path.realpath(name))  # replace the file that a link leads to, not the link
        with NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}-", delete=False) as draft:  # its mode is 0600
            try:
                yield draft
                draft.flush()
                os.replace(draft.name, path)
            except BaseException:
                with suppress(OSError):
                    os.unlink(draft.name)
                raise
    except OSError as wrong:
        raise WrongUse(f"{path} cannot be written: {wrong.strerror or wrong}") from wrong
