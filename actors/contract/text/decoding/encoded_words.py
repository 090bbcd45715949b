"""Finds the words of a text that may be encoded, for all words at once.

A text has a word for every six characters, and nearly none is encoded. The checks here pass every word that may be
encoded, and some others. Only those few are then examined one by one.
"""

import string
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]

_SPACES = bytes(code for code in range(128) if chr(code).isspace())
_NOT_SPACE = bytes(code not in _SPACES for code in range(256))
_OTHER, _BASE64_SYMBOL, _DIGIT, _UPPER, _LOWER = range(5)


def _kind(code: int) -> int:
    char = chr(code)
    if char in string.ascii_lowercase:
        return _LOWER
    if char in string.ascii_uppercase:
        return _UPPER
    return _DIGIT if char in string.digits else _BASE64_SYMBOL if char in "+/-_" else _OTHER


_KINDS = bytes(map(_kind, range(256)))
_IS_HEX = np.array([chr(code) in string.hexdigits for code in range(256)])


class Words(NamedTuple):
    """The words of an ASCII text, which are runs of base64 characters, in order: their start and end positions.

    ``data`` is the text, ``kinds`` the kind of each of its characters.
    """

    data: bytes
    starts: Integers
    ends: Integers
    kinds: npt.NDArray[np.uint8]

    def at(self, index: int) -> str:
        """Return the word with this index."""
        return self.data[self.starts[index] : self.ends[index]].decode()

    def long(self, least: int) -> Iterator[str]:
        """Yield the words with at least ``least`` characters."""
        yield from map(self.at, np.flatnonzero(self.ends - self.starts >= least).tolist())

    def mixed(self, least: int, most: int) -> Iterator[tuple[int, str]]:
        """Yield words of these lengths that mix upper and lower case and digits, as few words do, each with its index.

        A word without capitals is skipped: leetspeak has none, while an encoded word has some.
        """
        before, after = self.kinds[:-1], self.kinds[1:]
        small, capital, digit = before == _LOWER, before == _UPPER, before == _DIGIT
        mixed = (small & ((after == _UPPER) | (after == _DIGIT))) | (digit & (after >= _UPPER))
        mixed[:-1] |= capital[:-1] & capital[1:] & (after[1:] == _LOWER)
        indexes = np.searchsorted(self.starts, np.flatnonzero(mixed), side="right") - 1
        lengths = self.ends - self.starts
        found = np.zeros(len(lengths), dtype=np.bool_)
        found[indexes] = True
        found &= (lengths >= least) & (lengths <= most) & self._have(_UPPER) & self._have(_LOWER)
        yield from ((index, self.at(index)) for index in np.flatnonzero(found).tolist())

    def _have(self, kind: int) -> npt.NDArray[np.bool_]:
        """Return for each word whether it contains a character of a kind."""
        counts = np.concatenate(([0], np.cumsum(self.kinds == kind)))
        has: npt.NDArray[np.bool_] = counts[self.ends] > counts[self.starts]
        return has

    def hex(self, least: int, most: int) -> Iterator[tuple[int, str]]:
        """Yield words of these lengths that may be pairs of hexadecimal digits, each with its index."""
        lengths = self.ends - self.starts
        found = np.flatnonzero((lengths >= least) & (lengths <= most) & (lengths % 2 == 0))
        is_hex = _IS_HEX[np.frombuffer(self.data, dtype=np.uint8)]
        starts = self.starts[found]
        found = found[is_hex[starts] & is_hex[starts + 1] & is_hex[self.ends[found] - 1]]
        yield from ((index, self.at(index)) for index in found.tolist())


def words_in(data: bytes) -> Words:
    """Return the words of a text, given as ASCII."""
    kinds = np.frombuffer(data.translate(_KINDS), dtype=np.uint8)
    starts, ends = runs_of(kinds != _OTHER)
    return Words(data, starts, ends, kinds)


def bounds_of_runs(flags: npt.NDArray[np.bool_], least: int = 1) -> list[tuple[int, int]]:
    """Return the start and end of each run of at least ``least`` set flags."""
    starts, ends = runs_of(flags)
    long = np.flatnonzero(ends - starts >= least)
    return list(zip(starts[long].tolist(), ends[long].tolist(), strict=True))


def long_tokens(text: str, least: int) -> list[str]:
    """Return the parts of a text between white space that have at least ``least`` characters."""
    data = text.encode("ascii", "replace").translate(_NOT_SPACE)
    starts, ends = runs_of(np.frombuffer(data, dtype=np.bool_))
    long = np.flatnonzero(ends - starts >= least)
    runs = [text[start:end] for start, end in zip(starts[long].tolist(), ends[long].tolist(), strict=True)]
    if text.isascii():
        return runs
    # White space that is not ASCII separates them, too.
    return [token for run in runs for token in run.split() if len(token) >= least]


def runs_of(flags: npt.NDArray[np.bool_]) -> tuple[Integers, Integers]:
    """Return where each run of set flags begins, and where it ends (exclusive)."""
    edges = np.flatnonzero(np.diff(flags, prepend=False, append=False))
    return edges[::2], edges[1::2]
