"""Encoded runs of a text and what they decode to: base64, hexadecimal and percent-encoding.

None of these makes a text longer, so that the work is bounded by the text, the depth of nesting, ``MAX_RUNS`` and
``MAX_TRIES``; and it ends with the run that uses up what may be decoded. Whether a text can have any such run is asked
first, which costs a few microseconds.

- base64 (``base64words``), also URL-safe, unpadded, and split by white space.
- hex: at least six pairs of digits, also separated, also as ``\\x69``, ``0x69``, ``\\u0069``, ``&#x69;`` or ``U+0069``.
- percent: the text around percent escapes, with these decoded and ``+`` for a space.

Of decoded bytes only what is text counts (``plaintext``).
"""

import binascii
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Literal, TypeVar

import msgspec

from actors.reflex.base64words import MIXTURES, WordRun, kinds_of, runs_of_words
from actors.reflex.plaintext import texts_in

Encoding = Literal["base64", "hex", "percent"]

MAX_RUNS = 1024
"""Runs looked at in one text; more are cut."""

MAX_TRIES = 2_097_152
"""Characters of base64 that an input may have decoded from other starts and ends than the likeliest; more are cut.

Twenty times (``base64words``: ten starts, two ends) the length of a text of 100 KB, which is decoded in every way."""

CONTEXT = 160
"""Characters around a percent escape that are read with it, since the words there need no escape."""

ENOUGH = 0.75
"""Share of the longest decoding of a base64 run that another must reach to be read too."""

_BATCH = 131_072
"""Encoded characters decoded in one go: a call costs more than its work, and a run too many costs its work."""

# All of ASCII that is white space to Python, as in ``base64words``: a character that only one of the two skips leaves
# a run of the wrong length, which is an error.
_SPACES = bytes(code for code in range(128) if chr(code).isspace())
_URL_SAFE = bytes.maketrans(b"-_", b"+/")
_HEX_BREAKS = _SPACES + b",:;|_.-"
_HEX_KINDS = bytes(
    ord("h") if chr(code) in "0123456789abcdefABCDEF" else ord(" ") if code in _SPACES + b",:;|-" else ord(".")
    for code in range(256)
)
_HEX_BARE = (b"h" * 12, b" ".join([b"hh"] * 6), b"  ".join([b"hh"] * 6))
_HEX_PREFIXES = (b"\\x", b"\\X", b"0x", b"0X", b"\\u00", b"&#x", b"&#X", b"U+00")
_HEX_PREFIX = rb"0[xX]|\\[xX]|\\u00|&#[xX](?:00)?|U\+00"
_HEX_BREAK = rb"[\s,:;|_.-]"
_PAIR = rb"[0-9A-Fa-f][0-9A-Fa-f]"
# Sixteen bare pairs, or eight that are each followed by one break, are the same as so many single ones, and are taken
# in a tenth of the time.
_HEX = re.compile(
    rb"(?:[0-9A-Fa-f]{32}%(break)s{0,3}|%(eight)s%(break)s{0,2}|(?:%(prefix)s)?%(pair)s%(break)s{0,3})++"
    % {b"break": _HEX_BREAK, b"eight": (_PAIR + _HEX_BREAK) * 8, b"pair": _PAIR, b"prefix": _HEX_PREFIX}
)
_HEX_DIGITS = b"0123456789abcdefABCDEF"
_NOT_DIGITS = (b"&#x00", b"&#X00", b"\\u00", b"U+00", b"&#x", b"&#X", b"0x", b"0X", b"\\x", b"\\X")
_MIN_PAIRS = 6
_MAX_SHORT = 50
"""Characters that fewer than six pairs come to at most, with a prefix and three breaks each."""

_ESCAPE = "%[0-9A-Fa-f][0-9A-Fa-f]"
_ESCAPES = re.compile(f"(?:{_ESCAPE * 8}|{_ESCAPE})++")


class Run(msgspec.Struct, frozen=True):
    """An encoded stretch of a text, ``start`` to ``end`` in its characters, and what it decodes to."""

    start: int
    end: int
    text: str


class Room(msgspec.Struct, frozen=True):
    """What may be decoded: ``characters`` is how many may come out, ``tries`` what ``MAX_TRIES`` bounds."""

    characters: int
    tries: int = MAX_TRIES


class Runs(msgspec.Struct, frozen=True):
    """The runs of a text in one encoding, in order.

    They end with the one that goes beyond the room. ``cut``: there was more than is looked at. ``tries`` counts what
    was used of the room's.
    """

    found: tuple[Run, ...] = ()
    cut: bool = False
    tries: int = 0


NONE = Runs()

_Span = tuple[int, int]
_Item = TypeVar("_Item")


def base64_runs(text: str, ascii_text: bytes, room: Room) -> Runs:
    """Return the base64 runs of a text; ``ascii_text`` is the same with a ``?`` for every other character.

    The likeliest span of every run is decoded, its other ones as far as the room goes.
    """
    kinds = kinds_of(ascii_text)
    if not any(mixture in kinds for mixture in MIXTURES):
        return NONE
    runs = runs_of_words(kinds, MAX_RUNS + 1)
    spans = _tried(runs[:MAX_RUNS], room.tries)
    found = _up_to(room.characters, _base64(ascii_text, spans))
    fewer = any(len(some) < len(run.spans) for some, run in zip(spans, runs, strict=False))
    return Runs(found, fewer or len(runs) > MAX_RUNS, sum(_length(span) for some in spans for span in some[1:]))


def _tried(runs: list[WordRun], room: int) -> list[tuple[_Span, ...]]:
    """Return the spans of every run that are decoded."""
    tried = [run.spans[:1] for run in runs]
    # The shortest first, so that a long one leaves the others something.
    for place in sorted(range(len(runs)), key=lambda place: _length(runs[place].spans[0])):
        for span in runs[place].spans[1:]:
            room -= _length(span)
            if room < 0:
                return tried
            tried[place] += (span,)
    return tried


def _base64(ascii_text: bytes, tried: list[tuple[_Span, ...]]) -> Iterator[Run]:
    for batch in _in_batches(tried, lambda spans: sum(map(_length, spans))):
        texts = iter(texts_in([_from_base64(ascii_text[start:end]) for spans in batch for start, end in spans]))
        for spans in batch:
            kept = _likely([Run(*span, next(texts)) for span in spans])
            if kept:
                yield msgspec.structs.replace(kept[0], text="\n".join(each.text for each in kept))


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


def _from_base64(part: bytes) -> bytes:
    digits = part.translate(_URL_SAFE, _SPACES + b"=")
    return binascii.a2b_base64(digits + b"/" * (-len(digits) % 4))


def hex_runs(text: str, ascii_text: bytes, room: Room) -> Runs:
    """Return the hexadecimal runs of a text; ``ascii_text`` is the same with a ``?`` for every other character."""
    kinds = ascii_text.translate(_HEX_KINDS)
    places = [
        *(place for sign in _HEX_BARE if sign in kinds for place in _places(kinds, sign)),
        *(place for sign in _HEX_PREFIXES if sign in ascii_text for place in _places(ascii_text, sign)),
    ]
    if not places:
        return NONE
    return Runs(_up_to(room.characters, _hex(ascii_text, sorted(places)[:MAX_RUNS])), len(places) > MAX_RUNS)


def _places(data: bytes, sign: bytes) -> Iterator[int]:
    """Yield where hex digits may begin: at a sign, and again once the run of digits that it opens is over."""
    place = data.find(sign)
    for _ in range(MAX_RUNS + 1):
        if place < 0:
            return
        yield place
        place = data.find(sign, place + len(sign))


def _hex(data: bytes, places: list[int]) -> Iterator[Run]:
    spans = _hex_spans(data, places)
    for batch in _in_batches(spans, lambda found: _length(found[0])):
        for (span, _), text in zip(batch, texts_in([decoded for _, decoded in batch]), strict=True):
            if text:
                yield Run(*span, text)


def _hex_spans(data: bytes, places: list[int]) -> Iterator[tuple[_Span, bytes]]:
    end = 0
    for place in places:
        match = _HEX.match(data, place) if place >= end else None
        if match is None:
            continue
        decoded = _from_hex(match[0])
        if len(decoded) >= _MIN_PAIRS or len(match[0]) > _MAX_SHORT:
            end = match.end()
            yield (place, end), decoded


def _from_hex(written: bytes) -> bytes:
    digits = written.translate(None, _HEX_BREAKS)
    if digits.translate(None, _HEX_DIGITS):
        for prefix in _NOT_DIGITS:
            digits = digits.replace(prefix, b"")
    return binascii.unhexlify(digits)


def percent_runs(text: str, ascii_text: bytes, room: Room) -> Runs:
    """Return the stretches of a text around percent escapes, decoded."""
    if "%" not in text:
        return NONE
    spans = [match.span() for match in islice(_ESCAPES.finditer(text), MAX_RUNS + 1)]
    if not spans:
        return NONE
    windows: list[_Span] = []
    for start, end in spans[:MAX_RUNS]:
        if windows and start - CONTEXT <= windows[-1][1]:
            windows[-1] = (windows[-1][0], end + CONTEXT)
        else:
            windows.append((max(0, start - CONTEXT), end + CONTEXT))
    found = (Run(start, min(end, len(text)), _unescape(text[start:end])) for start, end in windows)
    return Runs(_up_to(room.characters, found), len(spans) > MAX_RUNS)


def _unescape(text: str) -> str:
    return _ESCAPES.sub(_decode_escape, text.replace("+", " "))


def _decode_escape(match: re.Match[str]) -> str:
    return bytes.fromhex(match[0].replace("%", "")).decode("utf-8", "replace")


def _up_to(allowance: int, runs: Iterable[Run]) -> tuple[Run, ...]:
    """Return the first runs, up to and with the one that goes beyond the allowance, line breaks included."""
    found: list[Run] = []
    room = allowance
    for run in runs:
        found.append(run)
        room -= len(run.text)
        if room < 0:
            break
        room -= 1
    return tuple(found)


def _in_batches(items: Iterable[_Item], length: Callable[[_Item], int]) -> Iterator[list[_Item]]:
    batch: list[_Item] = []
    total = 0
    for item in items:
        batch.append(item)
        total += length(item)
        if total >= _BATCH:
            yield batch
            batch, total = [], 0
    if batch:
        yield batch


def _length(span: _Span) -> int:
    return span[1] - span[0]


DECODERS: dict[Encoding, Callable[[str, bytes, Room], Runs]] = {
    "base64": base64_runs,
    "hex": hex_runs,
    "percent": percent_runs,
}
"""How the runs of each encoding are found, given a text, its ASCII and the room."""
