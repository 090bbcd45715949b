"""Files that are named on the command line: read within the command's time; written whole or not at all, privately."""

import os
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
from threading import Thread
from typing import IO, BinaryIO

import click

from deploy.cli.outcomes import WrongUse


def text_of(file: str) -> str:
    """Return the text of a file that was named on the command line, ``-`` being stdin; raises WrongUse."""
    try:
        return content_of(file).decode()
    except UnicodeDecodeError as wrong:
        where = "stdin" if file == "-" else file
        raise WrongUse(f"byte {wrong.start + 1:,} of {where} is not UTF-8: convert the text") from wrong


def content_of(file: str) -> bytes:
    """Return the bytes of a file that was named on the command line, ``-`` being stdin; raises WrongUse.

    Reading counts for the ``--timeout`` of a command that has one: a pipe may stay open for ever.
    One byte more than the limit is read, so that ``deploy.operating.guarding.item_files`` sees and refuses a larger
    file.
    """
    from deploy.operating.guarding.item_files import MAX_FILE_BYTES

    def read() -> bytes:
        with _opened(file) as stream:
            content: bytes = stream.read(MAX_FILE_BYTES + 1)
            return content

    try:
        return _within_timeout(read, "stdin" if file == "-" else file)
    except OSError as wrong:
        raise WrongUse(f"{file} cannot be read: {wrong.strerror}") from wrong


def _opened(file: str) -> AbstractContextManager[BinaryIO]:
    if file != "-":
        return Path(file).open("rb")
    if sys.stdin is not sys.__stdin__:  # a program that runs this command gives it a stdin of its own
        return nullcontext(sys.stdin.buffer)
    # A file of our own: the interpreter cannot end while a thread reads the one that it has made.
    return os.fdopen(os.dup(0), "rb")


def _within_timeout(read: Callable[[], bytes], what: str) -> bytes:
    """Read in the time that the command was given, if any; raises WrongUse when it is up, and OSError."""
    context = click.get_current_context()
    given, begun = context.params.get("timeout"), context.find_object(float)
    if given is None or begun is None:
        return read()
    done: Future[bytes] = Future()

    def run() -> None:
        try:
            done.set_result(read())
        except BaseException as wrong:
            done.set_exception(wrong)

    Thread(target=run, name="reading", daemon=True).start()  # nothing can end a read: it is left behind
    try:
        return done.result(max(0.0, begun + given - time.monotonic()))
    except FutureTimeout:
        raise WrongUse(
            f"{what} has not ended within {given:g} s: nothing was sent; let it end sooner, or give a longer --timeout"
        ) from None


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
