"""Decodes text written as numbers of characters: decimal, octal, binary, and letters by position in the alphabet.

A run of numbers counts if it decodes mostly to letters; tables of numbers hardly ever do. A first pass over the whole
text finds where there are runs of short numbers at all.
"""

import re
from collections.abc import Iterator, Sequence

import numpy as np

from actors.contract.text.decoding.encoded_words import runs_of
from actors.contract.text.decoding.plausibility import is_mostly_letters

_SEPARATED_BY = r"[\s,;|/.+-]{1,3}"
# Eight numbers or more with separators between them: decimal, octal, binary; calls such as ``chr(72)``; and twelve
# numbers of one or two digits, which may be positions in the alphabet.
_DECIMAL = re.compile(rf"(?<![\w.])(?:\d{{2,3}}{_SEPARATED_BY}){{7,}}\d{{2,3}}(?!\w)")
_OCTAL = re.compile(rf"(?<![\w.])(?:(?:0o)?[01]?[0-7]{{2}}{_SEPARATED_BY}){{7,}}(?:0o)?[01]?[0-7]{{2}}(?!\w)")
_BINARY = re.compile(r"(?<!\w)(?:0?[01]{7}[\s,;|/-]{1,3}){7,}0?[01]{7}(?!\w)")
_CALLS = re.compile(r"(?i)\b(?:chr|char|unichr)\(\s*(0x[0-9a-f]{2}|\d{2,3})\s*\)")
_ALPHABET = re.compile(r"(?<![\w.])(?:\d{1,2}[-._ /,]{1,3}){11,}\d{1,2}(?![\w.])")
_NUMBER = re.compile(r"\d+")
_WIDE = re.compile(r"[\s,;|/.+-]{4,}")
_WORD_GAP = re.compile(r"\s+|/|,\s")
_FEWEST = 8
"""Fewest numbers of a run."""

_LONGEST_GAP = 5
"""Most characters between the digits of two numbers of one run: a separator or two, and ``0o``."""

_MOST_RUNS = 1_024
"""If a text has more runs, this many from all over the text are read in every way, the others if they may be text."""

_LEAST_DIFFERENT = 8
"""Fewest different numbers of such a run that may be letters by position: most tables of small numbers have fewer."""

_LONG = 4_096
"""A run of decimal numbers with at least this many characters is decoded in one vectorised pass."""

_SEPARATORS = " \t\r\n,;|/.+-"

_IS_DIGIT = np.array([chr(code).isdigit() and code < 128 for code in range(256)])


def decode_numerals(text: str) -> Iterator[str]:
    """Yield what runs of numbers decode to."""
    # Wide columns of numbers are narrowed first.
    runs = _runs(_WIDE.sub(" ", text))
    chosen: Sequence[int] = range(len(runs))
    if len(runs) > _MOST_RUNS:
        # A sample from the whole text: what comes first must not hide what comes later.
        chosen = [(2 * number + 1) * len(runs) // (2 * _MOST_RUNS) for number in range(_MOST_RUNS)]
        for index in sorted(set(range(len(runs))).difference(chosen)):
            yield from _likely_text(runs[index])
    for index in chosen:
        run = runs[index]
        if len(run) > _LONG and (decoded := _from_long_decimal(run)):
            # A run that is text in decimal is neither text in octal nor positions in the alphabet.
            yield decoded
            continue
        for pattern, base in ((_DECIMAL, 10), (_OCTAL, 8), (_BINARY, 2)):
            for match in pattern.finditer(run):
                yield from _text_of_codes([int(each, base) for each in _NUMBER.findall(match[0].replace("0o", ""))])
        for match in _ALPHABET.finditer(run):
            yield from _letters(match[0])
    if "(" in text:
        calls = _CALLS.findall(text)
        if len(calls) >= _FEWEST:
            yield from _text_of_codes([int(each, 16 if each[1:2] in "xX" else 10) for each in calls])


def _likely_text(run: str) -> Iterator[str]:
    """Yield what a run decodes to, without a search for the parts that fit a form: one of many runs."""
    numbers = _NUMBER.findall(run.replace("0o", ""))
    codes = list(map(int, numbers))
    yield from _text_of_codes(codes)
    highest = max(map(max, numbers))
    if highest < "2":
        yield from _text_of_codes([int(each, 2) for each in numbers])
    elif highest < "8" and all(1 < len(each) < 4 for each in numbers):
        yield from _text_of_codes([int(each, 8) for each in numbers])
    if 9 < max(codes) <= 26 and len(set(codes)) >= _LEAST_DIFFERENT:
        yield from _letters(run)


def _from_long_decimal(run: str) -> str:
    """Return a long run decoded as decimal numbers of two or three digits; empty if that gives no text."""
    if (match := _DECIMAL.fullmatch(run.strip(_SEPARATORS))) is None:
        return ""
    data = np.frombuffer(match[0].encode("ascii", "replace"), dtype=np.uint8)
    digit = _IS_DIGIT.take(data)
    starts, ends = runs_of(digit)
    digits = data.astype(np.int32) - ord("0")
    codes = digits[ends - 1] + 10 * digits[ends - 2] + np.where(ends - starts > 2, 100 * digits[ends - 3], 0)
    # As for a short run: a number that is no letter separates two texts.
    decoded = np.where(codes < 127, codes, ord("\n")).astype(np.uint8).tobytes().decode("ascii")
    return decoded if is_mostly_letters(decoded) else ""


def _runs(text: str) -> list[str]:
    """Return the stretches of a text with successive numbers of one to three, seven or eight digits."""
    digit = _IS_DIGIT.take(np.frombuffer(text.encode("ascii", "replace"), dtype=np.uint8))
    starts, ends = runs_of(digit)
    if len(starts) < _FEWEST:
        return []
    lengths = ends - starts
    fits = (lengths <= 3) | (lengths == 7) | (lengths == 8)
    near = (starts[1:] - ends[:-1] <= _LONGEST_GAP) & fits[1:] & fits[:-1]
    firsts, lasts = runs_of(near)
    enough = np.flatnonzero(lasts - firsts + 1 >= _FEWEST)
    # Two characters more: an octal number may begin with ``0o``.
    return [text[max(0, int(starts[firsts[index]]) - 2) : int(ends[lasts[index]])] for index in enough.tolist()]


def _text_of_codes(codes: list[int]) -> Iterator[str]:
    # A number that is no letter separates two texts.
    decoded = "".join(chr(code) if code < 127 else "\n" for code in codes)
    if is_mostly_letters(decoded):
        yield decoded


def _letters(run: str) -> Iterator[str]:
    if max(map(int, _NUMBER.findall(run))) > 26:
        return
    words = [[chr(96 + int(each)) for each in _NUMBER.findall(word) if int(each)] for word in _WORD_GAP.split(run)]
    # One number in each word: the gaps were between letters, not between words.
    yield ("" if max(map(len, words)) == 1 else " ").join(map("".join, words))
