"""Extracts text from decoded bytes: valid UTF-8, at least six characters in a row.

Control characters count as text, since a reader does not see them. So ASCII in UTF-16, which has a zero byte after each
letter, is found as well. All other bytes are cut out: a wrong start or random bytes give no text.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

MIN_CHARACTERS = 6
"""Fewest characters of a stretch of text."""

_SEPARATOR = b"\xff"
"""A byte that occurs in no text; it separates parts that are decoded together."""

_NO_START, _CONTINUATION = 0, 9
"""In ``_LENGTHS``: no character has this byte; it continues a character."""


def _length(byte: int) -> int:
    if byte < 0x80:
        return 1
    if byte < 0xC0:
        return _CONTINUATION
    if byte < 0xC2 or byte > 0xF4:
        return _NO_START
    return 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4


_LENGTHS = bytes(map(_length, range(256)))
"""For each byte, the number of bytes of the character that it begins."""


def texts_in(parts: Sequence[bytes]) -> list[str]:
    """Return the text in each part, one stretch on each line.

    ASCII is text as it is. Other parts take about 10 ms a megabyte, whatever the bytes.
    """
    texts = [""] * len(parts)
    others = []
    for index, part in enumerate(parts):
        if len(part) < MIN_CHARACTERS:
            continue
        if part.isascii():
            texts[index] = part.decode("ascii")
        else:
            others.append(index)
    if others:
        for index, text in zip(others, _texts_in([parts[index] for index in others]), strict=True):
            texts[index] = text
    return texts


def _texts_in(parts: Sequence[bytes]) -> list[str]:
    """Return the text in each part; all parts are decoded in one call, whose overhead exceeds the work."""
    data = _SEPARATOR.join([*parts, b""])
    starts, covered = _characters(data)
    edges = np.flatnonzero(np.diff(covered, prepend=False, append=False))
    begins, ends = edges[::2], edges[1::2]
    counts = np.cumsum(starts, dtype=np.int32)  # characters up to each byte; the data ends with a separator
    long = counts[ends] - counts[begins] + 1 >= MIN_CHARACTERS
    # The byte after a stretch is not text, so a line break can replace it.
    shown = np.frombuffer(data, dtype=np.uint8).copy()
    shown[ends[long]] = ord("\n")
    marks = np.zeros(len(data) + 1, dtype=np.int8)
    marks[begins[long]] = 1
    marks[ends[long] + 1] -= 1
    kept = np.cumsum(marks[:-1], dtype=np.int8).view(bool)
    text = shown[kept].tobytes()
    part_ends = np.cumsum([len(part) + 1 for part in parts], dtype=np.int64)
    closes = np.cumsum(kept, dtype=np.int32)[part_ends - 1].tolist()
    return [
        text[begin : end - 1].decode("utf-8", "replace") if end > begin else ""
        for begin, end in zip([0, *closes], closes, strict=False)
    ]


def _characters(data: bytes) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Return which bytes begin a character, and which are part of one."""
    lengths = np.frombuffer(data.translate(_LENGTHS) + bytes(3), dtype=np.uint8)
    size = len(data)
    later = lengths == _CONTINUATION
    first, second, third = later[1 : size + 1], later[2 : size + 2], later[3 : size + 3]
    lengths = lengths[:size]
    four = (lengths == 4) & first & second & third
    three = ((lengths == 3) & first & second) | four
    two = ((lengths == 2) & first) | three
    starts = (lengths == 1) | two
    covered = starts.copy()
    covered[1:] |= two[:-1]
    covered[2:] |= three[:-2]
    covered[3:] |= four[:-3]
    return starts, covered
