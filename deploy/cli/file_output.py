"""Writing a file that was named on the command line: whole, or not at all, and for its owner alone."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO

import click


def write_file(path: Path, content: bytes) -> None:
    """Put ``content`` in a file's place; see :func:`writing_file`."""
    with writing_file(str(path)) as file:
        file.write(content)


@contextmanager
def writing_file(name: str) -> Iterator[IO[bytes]]:
    """Open what takes a file's place once all is written; one that is there stays until then. ``-`` is stdout.

    The file is its owner's alone from its first byte on, whoever may read what was there before: people's words may be
    in it. A pipe or a device takes what it gets.

    Raises:
        WrongUse: it cannot be written there.
    """
    from deploy.cli.failures import WrongUse

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
        path = Path(os.path.realpath(name))  # what a link leads to, not the link
        with NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}-", delete=False) as draft:  # made 0600
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
