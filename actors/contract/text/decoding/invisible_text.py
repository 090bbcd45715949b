"""Decodes text in invisible characters: variation selectors, tags, and bits in joiners, spaces and operators."""

import re
from collections.abc import Iterator
from itertools import permutations

from actors.contract.text.decoding.disguised_stretches import Undecoded
from actors.contract.text.decoding.plausibility import is_text, text_of

_RUN = re.compile(r"[^\x00-\x7f]{6}")
"""A quick check: every text in invisible characters contains such a run, and few texts in Latin letters do."""

# Bytes as variation selectors, ASCII as tag characters, and bits as two to four different invisible characters.
_SELECTORS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]{6,}")
_TAGS = re.compile("[\U000e0020-\U000e007e]{6,}")
_BITS = re.compile("[\u00ad\u180e\u200b-\u200f\u2060-\u2064\ufe00-\ufe0f\ufeff]{24,}")
_MOST = 65_536
"""Most characters of one run that are read."""


def decode_invisible(text: str) -> Iterator[str | Undecoded]:
    """Yield the text that is written in invisible characters."""
    if text.isascii() or not _RUN.search(text):
        return
    for match in _SELECTORS.finditer(text):
        codes = map(ord, match[0][:_MOST])
        hidden = text_of(bytes(code - 0xFE00 if code < 0xFE10 else code - 0xE0100 + 16 for code in codes))
        if hidden:
            yield hidden
        yield Undecoded(max(0, len(match[0]) - _MOST))
    for match in _TAGS.finditer(text):
        yield "".join(chr(ord(char) - 0xE0000) for char in match[0])
    for match in _BITS.finditer(text):
        yield from _from_bits(match[0][:_MOST])
        yield Undecoded(max(0, len(match[0]) - _MOST))


def _from_bits(run: str) -> Iterator[str]:
    different = sorted(set(run))
    if len(different) == 2:
        for zero, one in permutations(different):
            yield from _from_binary(run.replace(zero, "0").replace(one, "1"))
    elif len(different) == 3:
        # One of three different characters separates the letters.
        for zero, one, separator in permutations(different):
            yield from _from_binary(run.replace(separator, "").replace(zero, "0").replace(one, "1"))
    elif len(different) == 4:
        for order in (different, different[::-1]):
            pairs = str.maketrans({char: f"{number:02b}" for number, char in enumerate(order)})
            yield from _from_binary(run.translate(pairs))


def _from_binary(bits: str) -> Iterator[str]:
    for width in (8, 7):
        codes = [int(bits[at : at + width], 2) for at in range(0, len(bits) - width + 1, width)]
        if codes and max(codes) < 127:
            hidden = "".join(map(chr, codes))
            if is_text(hidden):
                yield hidden
