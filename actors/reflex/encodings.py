"""Encoded runs of a text and what they decode to: base64, hexadecimal and percent-encoding.

None of these makes a text longer, so that the work is bounded by the text, the depth of nesting and ``MAX_RUNS``.
Whether a text can have any such run is asked first, which costs a few microseconds.

- base64 (``base64words``), also URL-safe, unpadded, and split by white space.
- hex: at least six pairs of digits, also separated, also as ``\\x69``, ``0x69``, ``\\u0069``, ``&#x69;`` or ``U+0069``.
- percent: the text around percent escapes, with these decoded and ``+`` for a space.

Decoded bytes are read as UTF-8 (which shows ASCII in UTF-16 as well, its zeros being invisible). Bytes that are no
text are cut out: a wrong start or random bytes give nothing to search.
"""

import binascii
import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Literal

import msgspec

from actors.reflex.base64words import MIXTURES, kinds_of, runs_of_words

Encoding = Literal["base64", "hex", "percent"]

MAX_RUNS = 1024
"""Runs looked at in one text; more are cut."""

CONTEXT = 160
"""Characters around a percent escape that are read with it, since the words there need no escape."""

ENOUGH = 0.75
"""Share of the longest decoding of a base64 run that another must reach to be read too."""

_SEPARATOR = b"////"
"""Decodes to bytes that no text has, and so parts what is decoded together."""

# All of ASCII that is white space to Python, as in ``base64words``: a character that only one of the two skips leaves
# a run of the wrong length, which is an error.
_SPACES = bytes(code for code in range(128) if chr(code).isspace())
_URL_SAFE = bytes.maketrans(b"-_", b"+/")
_HEX_KINDS = bytes(
    ord("h") if chr(code) in "0123456789abcdefABCDEF" else ord(" ") if code in _SPACES + b",:;|-" else ord(".")
    for code in range(256)
)
_HEX_BARE = (b"h" * 12, b" ".join([b"hh"] * 6), b"  ".join([b"hh"] * 6))
_HEX_PREFIXES = (b"\\x", b"\\X", b"0x", b"0X", b"\\u00", b"&#x", b"&#X", b"U+00")
_HEX_PREFIX = rb"0[xX]|\\[xX]|\\u00|&#[xX](?:00)?|U\+00"
_HEX_BREAK = rb"[\s,:;|_.-]"
_HEX = re.compile(rb"(?:(?:%s)?[0-9A-Fa-f]{2}%s{0,3}){6,}" % (_HEX_PREFIX, _HEX_BREAK))
_NOT_HEX = re.compile(rb"%s|%s+" % (_HEX_PREFIX, _HEX_BREAK))
_ESCAPES = re.compile(r"%[0-9A-Fa-f]{2}(?:%[0-9A-Fa-f]{2})*")
# ASCII, controls included since they are invisible, and sequences that have the form of UTF-8.
_TEXT = re.compile(rb"(?:[\x00-\x7f]|[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}){6,}")


class Run(msgspec.Struct, frozen=True):
    """An encoded stretch of a text, ``start`` to ``end`` in its characters, and what it decodes to."""

    start: int
    end: int
    text: str


class Runs(msgspec.Struct, frozen=True):
    """The runs of a text in one encoding, in order; ``cut``: there were more than are looked at."""

    found: tuple[Run, ...] = ()
    cut: bool = False


NONE = Runs()


def base64_runs(text: str, ascii_text: bytes) -> Runs:
    """Return the base64 runs of a text; ``ascii_text`` is the same with a ``?`` for every other character."""
    kinds = kinds_of(ascii_text)
    if not any(mixture in kinds for mixture in MIXTURES):
        return NONE
    runs = runs_of_words(kinds, MAX_RUNS + 1)
    found = []
    # All spans of all runs are decoded at once: most are no base64, and a call costs more than its work.
    spans = [span for run in runs[:MAX_RUNS] for span in run.spans]
    texts = iter(_decode_base64([ascii_text[start:end] for start, end in spans]))
    for run in runs[:MAX_RUNS]:
        decoded = [Run(*span, next(texts)) for span in run.spans]
        if kept := _likely(decoded):
            found.append(msgspec.structs.replace(kept[0], text="\n".join(each.text for each in kept)))
    return Runs(tuple(found), len(runs) > MAX_RUNS)


def _likely(decoded: list[Run]) -> list[Run]:
    """Return the decodings of a run that are about as long as the longest, without those that others contain.

    A word too many at either end puts a false letter there, so that the longest need not be the right one.
    """
    most = max(len(each.text) for each in decoded)
    kept: list[Run] = []
    for each in decoded:
        if each.text and len(each.text) >= ENOUGH * most and not any(each.text in other.text for other in kept):
            kept.append(each)
    return kept


def _decode_base64(parts: list[bytes]) -> list[str]:
    """Decode many runs in one go."""
    quads = []
    ends = []
    length = 0
    for part in parts:
        digits = part.translate(_URL_SAFE, _SPACES + b"=")
        quads.append(digits + b"/" * (-len(digits) % 4) + _SEPARATOR)
        length += len(quads[-1]) // 4 * 3
        ends.append(length)
    data = binascii.a2b_base64(b"".join(quads))
    texts = [""] * len(parts)
    place = 0
    for match in _TEXT.finditer(data):
        while match.start() >= ends[place]:
            place += 1
        texts[place] += ("\n" if texts[place] else "") + match[0].decode("utf-8", "replace")
    return texts


def hex_runs(text: str, ascii_text: bytes) -> Runs:
    """Return the hexadecimal runs of a text; ``ascii_text`` is the same with a ``?`` for every other character."""
    kinds = ascii_text.translate(_HEX_KINDS)
    places = [
        *(place for sign in _HEX_BARE if sign in kinds for place in _places(kinds, sign)),
        *(place for sign in _HEX_PREFIXES if sign in ascii_text for place in _places(ascii_text, sign)),
    ]
    if not places:
        return NONE
    return Runs(tuple(_hex(ascii_text, sorted(places)[:MAX_RUNS])), len(places) > MAX_RUNS)


def _places(data: bytes, sign: bytes) -> Iterator[int]:
    """Yield where hex digits may begin: at a sign, and again once the run of digits that it opens is over."""
    place = data.find(sign)
    for _ in range(MAX_RUNS + 1):
        if place < 0:
            return
        yield place
        place = data.find(sign, place + len(sign))


def _hex(data: bytes, places: list[int]) -> Iterator[Run]:
    end = 0
    for place in places:
        match = _HEX.match(data, place) if place >= end else None
        if match is not None:
            end = match.end()
            text = _text(binascii.unhexlify(_NOT_HEX.sub(b"", match[0])))
            if text:
                yield Run(place, end, text)


def percent_runs(text: str, ascii_text: bytes) -> Runs:
    """Return the stretches of a text around percent escapes, decoded."""
    if "%" not in text:
        return NONE
    spans = [match.span() for match in islice(_ESCAPES.finditer(text), MAX_RUNS + 1)]
    if not spans:
        return NONE
    windows: list[tuple[int, int]] = []
    for start, end in spans[:MAX_RUNS]:
        if windows and start - CONTEXT <= windows[-1][1]:
            windows[-1] = (windows[-1][0], end + CONTEXT)
        else:
            windows.append((max(0, start - CONTEXT), end + CONTEXT))
    found = (Run(start, min(end, len(text)), _unescape(text[start:end])) for start, end in windows)
    return Runs(tuple(found), len(spans) > MAX_RUNS)


def _unescape(text: str) -> str:
    return _ESCAPES.sub(_decode_escape, text.replace("+", " "))


def _decode_escape(match: re.Match[str]) -> str:
    return bytes.fromhex(match[0].replace("%", "")).decode("utf-8", "replace")


def _text(data: bytes) -> str:
    return "\n".join(part.decode("utf-8", "replace") for part in _TEXT.findall(data))


DECODERS: dict[Encoding, Callable[[str, bytes], Runs]] = {
    "base64": base64_runs,
    "hex": hex_runs,
    "percent": percent_runs,
}
"""How the runs of each encoding are found, given a text and its ASCII."""
