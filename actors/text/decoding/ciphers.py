"""Texts in a cipher that exchanges letters: shifted by any number of places, mirrored, or rot47; and backwards.

They are told by their common words: a text that has hardly any, and many once it is turned.
"""

import codecs
import re
import string
from collections.abc import Iterator
from functools import cache

from actors.text.rewriting import COMMON

MOST = 4_096
"""Characters from the beginning of a text by whose words a cipher is told."""

_WORD = re.compile(r"[a-z]{2,}")
_WORD_47 = re.compile(r"[!-~]{2,}")
_NO_LETTERS = bytes(code if chr(code) in string.ascii_lowercase else ord(" ") for code in range(256))
_MOST_WORDS = 96
_FEWEST_WORDS = 4
_OWN, _TURNED = 0.15, 0.3
_LEAST_FOUND = 2
_ROT13 = 12
_VISIBLE = "".join(map(chr, range(33, 127)))
_ROT47 = str.maketrans(_VISIBLE, _VISIBLE[47:] + _VISIBLE[:47])


@cache
def _tables() -> tuple[tuple[frozenset[str], dict[int, int]], ...]:
    """Return for each cipher the common words as they stand in it, and how it is undone."""
    small = string.ascii_lowercase
    turned = [small[by:] + small[:by] for by in range(1, 26)] + [small[::-1]]
    tables = []
    for letters in turned:
        table = str.maketrans(letters + letters.upper(), small + small.upper())
        hidden = str.maketrans(small, letters)
        tables.append((frozenset(word.translate(hidden) for word in COMMON if len(word) > 1), table))
    return tuple(tables)


def ciphers(text: str) -> Iterator[str]:
    """Yield a text with its cipher undone, if it has one."""
    words = [word.decode() for word in dict.fromkeys(_words(text)) if len(word) > 1][:_MOST_WORDS]
    if _share(words, COMMON) >= _OWN:
        return
    if len(words) >= _FEWEST_WORDS:
        shares = [(_share(words, hidden), table) for hidden, table in _tables()]
        best, table = max(shares, key=lambda each: each[0])
        if best >= _TURNED and best * len(words) >= _LEAST_FOUND:
            yield text.translate(table)
        backwards = [word[::-1] for word in words]
        if _share(backwards, COMMON) >= _TURNED:
            yield text[::-1]
            yield " ".join(word[::-1] for word in text.split(" "))
        elif _share(backwards, _tables()[_ROT13][0]) >= _TURNED:
            yield codecs.encode(text[::-1], "rot13")
    parts = _WORD_47.findall(text[:MOST])[:_MOST_WORDS]
    if len(parts) >= _FEWEST_WORDS:
        turned = _WORD.findall(" ".join(parts).translate(_ROT47))
        if len(turned) >= _FEWEST_WORDS and _share(turned, COMMON) >= _TURNED:
            yield text.translate(_ROT47)


def _words(text: str) -> list[bytes]:
    return text[:MOST].lower().encode("ascii", "replace").translate(_NO_LETTERS).split()


def _share(words: list[str], common: frozenset[str]) -> float:
    return sum(map(common.__contains__, words)) / max(len(words), 1)
