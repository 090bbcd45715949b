"""Reading labelled files: JSON Lines, one row in each line."""

from codecs import BOM_UTF8
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from schemas.intake.error_messages import error_line

RowT = TypeVar("RowT", bound=msgspec.Struct)

Label = Literal["attack", "benign", "hard_benign"]
"""What a prompt is. Any other word is an error: else a misspelt attack would silently count as harmless."""


def labelled_rows(path: Path, kind: type[RowT]) -> Iterator[RowT]:
    """Yield the rows of a file; blank lines, a byte order mark and fields that ``kind`` lacks are skipped.

    Raises:
        ValueError: a line is not such a row; the message names the line, and the values that its fields take.
    """
    decoder = msgspec.json.Decoder(kind)
    for number, line in enumerate(path.read_bytes().removeprefix(BOM_UTF8).splitlines(), 1):
        if not line.strip():
            continue
        try:
            yield decoder.decode(line)
        except msgspec.ValidationError as wrong:
            raise ValueError(f"{path.name}:{number}: {error_line(kind, str(wrong))}") from wrong
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as wrong:
            raise ValueError(f"{path.name}:{number}: not JSON: {wrong}") from wrong
