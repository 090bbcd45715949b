"""The fold table: the character that each Unicode character counts as when a text is searched for signatures.

NFKD and case folding are applied, look-alikes become the ASCII letter that they look like, and combining marks are
removed. The fold depends only on the single character, so it is one table look-up. ``actors.contract.text.lookalikes``
holds the look-alikes that NFKD and case folding do not unify. If the capital and the small letter look like different
ASCII letters (Greek eta: H and n), both are listed.

The table is derived from the interpreter's Unicode data. Foldings of assigned characters never change between Unicode
versions; characters that a version does not know yet stay as they are.
"""

import unicodedata
from collections.abc import Iterator
from functools import cache, lru_cache
from itertools import chain
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from actors.contract.text.lookalikes import CONFUSABLES
from schemas.disk_cache import cached

SPACE, INVISIBLE, MARK = -1, -2, -3
"""Values of characters that are not matched: white space, invisible characters, and combining marks."""

EXPANDED = -4
"""Values at or below this stand for several characters: ``EXPANDED - n`` is entry ``n`` of the expansions."""

MAX_EXPANSION = 4
"""Ligatures of whole words (up to 18 letters) stay as they are, so no text grows by more than this in folding."""

_CODE_POINTS = 0x110000

Codes = npt.NDArray[np.int32]

_BRAILLE_BLANK = "\u2800"  # a symbol by category, white space to the eye
_HANGUL = range(0xAC00, 0xD7A4)
_TAGS = range(0xE0000, 0xE1000)
_SURROGATES = range(0xD800, 0xE000)
# Default-ignorable characters outside category Cf (Unicode, DerivedCoreProperties): joiners, fillers, selectors.
_IGNORABLE = frozenset(
    chr(code)
    for block in (
        (0x34F, 0x350),
        (0x115F, 0x1161),
        (0x17B4, 0x17B6),
        (0x180B, 0x1810),
        (0x2065, 0x2066),
        (0xFE00, 0xFE10),
        (0xFFF0, 0xFFF9),
        (_TAGS.start, _TAGS.stop),
    )
    for code in range(*block)
)
# Categories without case whose characters are neither white space, nor invisible, nor marks.
_PLAIN_CATEGORIES = frozenset({"Lo", "Cn", "Nd", "No", "Po", "Sm", "So", "Sk", "Sc", "Lm", "Mc"})
# Elsewhere every character except tags and surrogates folds to itself: ideographs, private use, unassigned planes.
_FOLDED = (
    range(0x3400),
    range(0xA000, 0xAC00),
    range(0xD7A4, 0xD800),
    range(0xF900, 0x17000),
    range(0x1B000, 0x20000),
    range(0x2F800, 0x2FA20),
)


class FoldTable(msgspec.Struct, frozen=True):
    """``single[c]`` is the value of code point ``c``; entry n of the expansions is ``pool[start[n]:start[n + 1]]``."""

    single: Codes
    pool: Codes
    start: npt.NDArray[np.int64]


_SPECIAL = frozenset({_BRAILLE_BLANK, *_IGNORABLE, *CONFUSABLES})


@lru_cache(maxsize=4096)
def fold_character(char: str) -> str:
    """Return the folded form of a character, marks included; folding it again changes nothing."""
    listed = CONFUSABLES.get(char)
    if listed is not None:
        return listed
    step = unicodedata.normalize("NFKD", char)
    # Each part is looked up before case folding, since look-alikes depend on the case.
    step = "".join(CONFUSABLES.get(part) or part.casefold() for part in step)
    return char if step == char else "".join(map(fold_character, step))


def _value(char: str) -> int:
    if char.isspace() or char == _BRAILLE_BLANK:
        return SPACE
    category = unicodedata.category(char)
    if category in ("Cf", "Cc", "Cs") or char in _IGNORABLE:
        return INVISIBLE
    return MARK if category in ("Mn", "Me") else ord(char)


def values_of(char: str) -> tuple[int, ...]:
    """Return the table's values for a character: one, or several (without marks) where it stands for more."""
    values = tuple(map(_value, fold_character(char)))
    if len(values) == 1:
        return values
    visible = tuple(value for value in values if value != MARK) or (MARK,)
    return visible if len(visible) <= MAX_EXPANSION else (ord(char),)


def _folding_characters() -> Iterator[str]:
    """Yield the characters that may fold to something else: one in five, found without folding all."""
    chars = list(map(chr, chain.from_iterable(_FOLDED)))
    for char, category, parts in zip(
        chars, map(unicodedata.category, chars), map(unicodedata.decomposition, chars), strict=True
    ):
        if category not in _PLAIN_CATEGORIES or parts or char in _SPECIAL:
            yield char


@cache
def fold_table() -> FoldTable:
    """Return the fold table of all code points: 5 MB, made once for a user and kept on disk."""
    content = cached("fold-table", table_key(), lambda: _encoded(_made_table()))
    numbers = np.frombuffer(content, dtype=np.int32)
    single, rest = numbers[2 : 2 + _CODE_POINTS], numbers[2 + _CODE_POINTS :]
    starts = int(numbers[0])
    return FoldTable(single, rest[starts:], rest[:starts].astype(np.int64))


@cache
def table_key() -> bytes:
    """Return all that the table depends on."""
    return (
        Path(__file__).read_bytes()
        + repr((np.little_endian, unicodedata.unidata_version, sorted(CONFUSABLES.items()))).encode()
    )


def _encoded(table: FoldTable) -> bytes:
    """Return a table as numbers: how many starts there are, 0, then values, starts and pool."""
    head = np.array([len(table.start), 0], dtype=np.int32)
    return b"".join(part.astype(np.int32).tobytes() for part in (head, table.single, table.start, table.pool))


def _made_table() -> FoldTable:
    single = np.arange(_CODE_POINTS, dtype=np.int32)
    expansions: list[tuple[int, ...]] = []
    for char in _folding_characters():
        values = values_of(char)
        if len(values) == 1:
            single[ord(char)] = values[0]
        else:
            single[ord(char)] = EXPANDED - len(expansions)
            expansions.append(values)
    for syllable in _HANGUL:  # decomposed by rule, into letters that all fold to themselves
        single[syllable] = EXPANDED - len(expansions)
        expansions.append(tuple(map(ord, unicodedata.normalize("NFD", chr(syllable)))))
    for block in (_SURROGATES, _TAGS):
        single[block.start : block.stop] = INVISIBLE
    pool = np.array([value for values in expansions for value in values], dtype=np.int32)
    start = np.concatenate(([0], np.cumsum([len(values) for values in expansions])))
    return FoldTable(single, pool, start)
