"""Reading labelled files: JSON Lines, a row a line."""

from codecs import BOM_UTF8
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from schemas.intake.error_messages import error_line

S = TypeVar("S", bound=msgspec.Struct)

Label = Literal["attack", "benign", "hard_benign"]
"""What a prompt is: another word would make harmless of an attack, or leave a row out, without a word."""


def labelled_rows(path: Path, kind: type[S]) -> Iterator[S]:
    """Yield the rows of a file; blank lines, a byte order mark and fields that ``kind`` lacks are passed over.

    Raises:
        ValueError: a line is not such a row; the message names the line, and what its fields take.
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
