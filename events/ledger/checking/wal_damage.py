"""Damage in the write-ahead log beside a ledger, which SQLite itself ignores silently. Pure.

SQLite reads the log's frames up to the first invalid one, takes that for the end, and drops what was committed behind
it: rows, and the row count that would show their loss. The format is that of https://www.sqlite.org/walformat.html.
"""

import sys
from array import array
from struct import Struct
from typing import Literal, TypeAlias

# The header of the log, and that of each frame (a changed page of the database): numbers of 4 bytes.
_HEADER = Struct(">IIIIIIII")
_FRAME = Struct(">IIIIII")
_MAGIC = 0x377F0682
"""First four bytes of a write-ahead log; the lowest bit is set if checksums are big-endian."""
_MAGICS: dict[int, Literal["little", "big"]] = {_MAGIC: "little", _MAGIC | 1: "big"}
_MASK = 0xFFFFFFFF

_Sum: TypeAlias = tuple[int, int]
"""The two halves of the format's running checksum."""


def wal_damage(content: bytes) -> str:
    """Return what is wrong with a write-ahead log; empty if nothing is.

    A transaction that was unfinished when the process or machine died is no damage: it was never acknowledged. Damaged
    salts in the very last frame look the same, and are not found.
    """
    if not content:
        return ""
    if len(content) < _HEADER.size:
        return "its header is cut"
    magic, _, page_size, _, *salts, first, second = _HEADER.unpack_from(content)
    order = _MAGICS.get(magic)
    if order is None or _sum(content[: _HEADER.size - 8], (0, 0), order) != (first, second):
        return "its header is damaged: nothing in it is read"
    size = _FRAME.size + page_size
    starts = range(_HEADER.size, len(content) - size + 1, size)
    running, broken = (first, second), 0
    for number, start in enumerate(starts, 1):
        _, committed, *frame_salts, stored_first, stored_second = _FRAME.unpack_from(content, start)
        is_current = frame_salts == salts
        if not broken:
            running = _sum(content[start : start + 8], running, order)
            running = _sum(content[start + _FRAME.size : start + size], running, order)
            broken = 0 if is_current and running == (stored_first, stored_second) else number
        if broken and is_current and committed:
            return f"frame {broken} of {len(starts)} is damaged: what was committed with it and behind it is not read"
    return ""


def _sum(content: bytes, start: _Sum, order: Literal["little", "big"]) -> _Sum:
    words = array("I", content)
    if order != sys.byteorder:
        words.byteswap()
    first, second = start
    pairs = iter(words)
    for left, right in zip(pairs, pairs, strict=True):
        first = (first + left + second) & _MASK
        second = (second + right + first) & _MASK
    return first, second
