"""Writing a file that was named on the command line: whole, or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO


@contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for what takes a file's place when the block ends; after an error, what was there is there still.

    Raises:
        WrongUse: it cannot be written there.
    """
    from deploy.cli.failures import WrongUse

    try:
        if path.exists() and not path.is_file():  # a pipe or a device takes what it gets
            with path.open("wb") as there:
                yield there
            return
        with NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}-", delete=False) as draft:
            try:
                yield draft
                draft.flush()
                mask = os.umask(0)
                os.umask(mask)
                os.chmod(draft.name, 0o666 & ~mask)
                os.replace(draft.name, path)
            except BaseException:
                with suppress(OSError):
                    os.unlink(draft.name)
                raise
    except OSError as wrong:
        raise WrongUse(f"{path} cannot be written: {wrong.strerror or wrong}") from wrong


def write_file(path: Path, content: bytes) -> None:
    """Put ``content`` in a file's place; one that is there stays until the new one is whole.

    Raises:
        WrongUse: it cannot be written there.
    """
    with whole_file(path) as file:
        file.write(content)
