"""Reading labelled files: JSON Lines, one row in each line."""

from codecs import BOM_UTF8
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from events.files.bounded_files import read_bounded
from schemas.intake.nearest_name import nearest_name
from schemas.intake.strict import BadInput, quoted_name, read

RowT = TypeVar("RowT", bound=msgspec.Struct)

Label = Literal["attack", "benign", "hard_benign"]
"""What a prompt is. Any other word is an error: else a misspelt attack would silently count as harmless."""


MOST_BYTES = 512 * 1024 * 1024
"""Most bytes of a file: its rows take several times as much memory."""

_PIPE_WAIT_S = 600.0
"""Seconds within which a pipe must be written to its end: a corpus may be unpacked on its way."""

_SIMILAR = 0.8
"""An unknown field at least this similar to a known one counts as misspelt. Corpora have fields of their own."""


def labelled_rows(path: Path, kind: type[RowT]) -> Iterator[RowT]:
    """Yield the rows of a file; blank lines, a byte order mark and fields that ``kind`` lacks are skipped.

    An unknown field whose name is like that of a missing one is refused: a misspelt label would silently leave its line
    out.

    Raises:
        ValueError: a line is not such a row; the message names the line, and the values that its fields take.
        OSError: the file cannot be read, or is too large.
    """
    known, checked = frozenset(kind.__struct_fields__), set[frozenset[str]]()
    content = read_bounded(path, MOST_BYTES, _PIPE_WAIT_S)
    for number, line in enumerate(content.removeprefix(BOM_UTF8).splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = read(line, kind, "the line", open_to=(kind,))
            given = frozenset(msgspec.json.decode(line, type=dict[str, msgspec.Raw]))
            if given not in checked:
                _refuse_misspelt(given, known)
                checked.add(given)
        except BadInput as wrong:
            raise ValueError(f"{path.name}:{number}: {wrong}") from wrong
        yield row


def _refuse_misspelt(given: frozenset[str], known: frozenset[str]) -> None:
    for name in sorted(given - known):
        if meant := nearest_name(name, known - given, cutoff=_SIMILAR):
            hint = f"there is no field {quoted_name(name)}: did you mean {meant!r}? Rename it, or leave it out"
            raise BadInput("unknown_field", name, hint)
