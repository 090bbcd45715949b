"""Texts written as the numbers of their characters: decimal, octal, binary, and letters by their place in the alphabet.

A run of numbers counts if it gives letters for the most part: tables of numbers hardly ever do.
"""

import re
from collections.abc import Iterator

from schemas.decoding.plausible import is_worded

_APART = r"[\s,;|/.+-]{1,3}"
_DECIMAL = re.compile(rf"(?<![\w.])(?:\d{{2,3}}{_APART}){{7,}}\d{{2,3}}(?!\w)")
_OCTAL = re.compile(rf"(?<![\w.])(?:(?:0o)?[01]?[0-7]{{2}}{_APART}){{7,}}(?:0o)?[01]?[0-7]{{2}}(?!\w)")
_BINARY = re.compile(r"(?<!\w)(?:0?[01]{7}[\s,;|/-]{1,3}){7,}0?[01]{7}(?!\w)")
_CALLS = re.compile(r"(?i)\b(?:chr|char|unichr)\(\s*(0x[0-9a-f]{2}|\d{2,3})\s*\)")
_PLACES = re.compile(r"(?<![\w.])(?:\d{1,2}[-._ /,]{1,3}){11,}\d{1,2}(?![\w.])")
_NUMBER = re.compile(r"\d+")
_WORD_GAP = re.compile(r"\s+|/|,\s")
_FEWEST = 8
_MOST = 16_384
"""Characters of one run that are read."""


def numerals(text: str) -> Iterator[str]:
    """Yield what runs of numbers say."""
    for pattern, base in ((_DECIMAL, 10), (_OCTAL, 8), (_BINARY, 2)):
        for match in pattern.finditer(text):
            yield from _said([int(each, base) for each in _NUMBER.findall(match[0][:_MOST].replace("0o", ""))])
    calls = _CALLS.findall(text)
    if len(calls) >= _FEWEST:
        yield from _said([int(each, 16 if each[1:2] in "xX" else 10) for each in calls])
    for match in _PLACES.finditer(text):
        yield from _letters(match[0][:_MOST])


def _said(codes: list[int]) -> Iterator[str]:
    if max(codes) < 127:
        said = "".join(map(chr, codes))
        if is_worded(said):
            yield said


def _letters(run: str) -> Iterator[str]:
    if max(map(int, _NUMBER.findall(run))) > 26:
        return
    words = [[chr(96 + int(each)) for each in _NUMBER.findall(word) if int(each)] for word in _WORD_GAP.split(run)]
    # One number a word: there were no words, only letters.
    yield ("" if max(map(len, words)) == 1 else " ").join(map("".join, words))
