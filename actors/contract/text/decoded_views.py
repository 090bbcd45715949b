"""Decoded views of a text: what its base64, base32, hex, Morse, rot13 and the like read as.

These are the common encodings, each undone once. The package ``decoding`` undoes rarer ones and several inside each
other. Intuition and the trained judges (linear classifiers of texts) read what both return. Only views that look like
language are returned. The work is limited: encoded runs are searched for in the first ``SEARCHED`` characters, and all
views together have a limited number of characters, in equal shares. Of a rewriting (rot13, reversed, leetspeak), two
kinds of parts are kept: stretches that look more like language than the original, and the surroundings of instruction
words (words typical of instructions to a model) that only the rewriting has. All encoded runs of a kind are decoded;
from the fourth on they form one view. What the shares cut off is counted.
"""

import base64
import binascii
import html
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple
from urllib.parse import unquote

import msgspec

from actors.contract.text.folding import lower_in_place
from actors.contract.text.joined_parts import shares
from actors.contract.text.judge.instruction_words import LEET_MARKS, PLAIN_INSTRUCTION_WORDS, may_instruct
from actors.contract.text.possible_encodings import kinds_in
from actors.contract.text.rewriting import REWRITE, Rewriting, common_word_share

SEARCHED = 16_384
"""Characters from the beginning of a text in which encoded runs are searched for."""

MAX_PAYLOADS = 4
"""Most views of encoded runs of one kind; the last one holds all further runs."""

_PIECE = 256
"""Characters of a decoded run that are judged by themselves where the whole is no text."""

MAX_VIEWED, LEAST_VIEWED = 8_192, 2_048
"""Most characters of all views together: the length of the text, within these two limits."""

STRETCH = 4_096
"""Characters that are rewritten (rot13, reversed, leetspeak) and compared with the original as one stretch."""

_AROUND = 256
"""Characters kept on either side of an instruction word, where the stretch as a whole does not look like language."""

_BASE64 = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{16,}={0,2}")
_BASE32 = re.compile(r"(?<![A-Za-z0-9])[A-Z2-7]{16,}={0,6}(?![A-Za-z0-9])")
_HEX = re.compile(r"(?<![0-9A-Za-z])(?:(?:0x|\\x)?[0-9a-fA-F]{2}[\s:,]{0,2}){8,}")
_HEX_MARKS = re.compile(r"0x|\\x|[\s:,]")
_BINARY = re.compile(r"(?:[01]{8}[\s,]*){4,}")
_MORSE = re.compile(r"(?:[.\-\u2022\u2013]{1,6}[ /|]+){8,}[.\-\u2022\u2013]{1,6}")
_ESCAPE = re.compile(r"%[0-9a-fA-F]{2}|\\u\{?[0-9a-fA-F]{4,6}\}?|\\U[0-9a-fA-F]{8}|\\x[0-9a-fA-F]{2}|&#x?[0-9a-fA-F]+;")
_CODE_ESCAPE = re.compile(r"\\u\{?([0-9a-fA-F]{4,6})\}?|\\U([0-9a-fA-F]{8})|\\x([0-9a-fA-F]{2})")
_LEET_WORD = re.compile(r"(?<![\w@$#])(?=[a-zA-Z@$]*[0134578@$])[a-zA-Z0134578@$]{2,}")
_UP_TO_LETTER = re.compile(r"(\S*[a-zA-Z])\S*|\S+")
"""A run without white space; the group ends with its last letter."""

_SPACED = re.compile(r"(?<!\S)(?:\S[ \u00a0]){5,}\S(?!\S)")
_NAMES_ROT13 = re.compile(r"(?i)\brot[ -]?13\b")
_MORSE_LETTERS = dict(
    zip(
        re.findall(
            r"\S+",
            ".- -... -.-. -.. . ..-. --. .... .. .--- -.- .-.. -- "
            "-. --- .--. --.- .-. ... - ..- ...- .-- -..- -.-- --..",
        ),
        "abcdefghijklmnopqrstuvwxyz",
        strict=True,
    )
)


class DecodedView(msgspec.Struct, frozen=True):
    """A decoded view of a text: its kind (one of ``KINDS``) and its text."""

    kind: str
    text: str


class DecodedViews(NamedTuple):
    """The decoded views of a text, and the number of their characters that were cut off."""

    found: tuple[DecodedView, ...]
    unread: int


def decoded_views_of(text: str) -> tuple[DecodedView, ...]:
    """Return the decoded views of a text, in the order of ``KINDS``; empty for nearly every text."""
    return read_decoded_views(text).found


def read_decoded_views(text: str) -> DecodedViews:
    """Return the decoded views of a text, in the order of ``KINDS``, and how many characters of them were cut off."""
    head = text[:SEARCHED]
    may_have = kinds_in(head)
    found = [DecodedView(kind, decoded) for kind, decode in _DECODERS if kind in may_have for decoded in decode(head)]
    lengths = [len(view.text) for view in found]
    allotted = shares(lengths, min(MAX_VIEWED, max(LEAST_VIEWED, len(head))))
    kept = (DecodedView(view.kind, view.text[:share]) for view, share in zip(found, allotted, strict=True) if share)
    return DecodedViews(tuple(kept), sum(lengths) - sum(allotted))


def _payloads(pattern: re.Pattern[str], head: str, decode: Callable[[str], bytes]) -> Iterator[str]:
    texts: list[str] = []
    for match in pattern.finditer(head):
        try:
            text = decode(match[0]).decode("utf-8")
        except (ValueError, binascii.Error):
            continue
        if part := _text_in(text):
            texts.append(part)
    yield from texts[: MAX_PAYLOADS - 1]
    if len(texts) >= MAX_PAYLOADS:
        yield "\n".join(texts[MAX_PAYLOADS - 1 :])


def _text_in(decoded: str) -> str:
    """Return what was decoded, if it is text; else its pieces that are, and those beside them: others are filler."""
    if _is_text(decoded):
        return decoded
    pieces = [decoded[at : at + _PIECE] for at in range(0, len(decoded), _PIECE)]
    texts = [False, *map(_is_text, pieces), False]
    return "".join(piece for at, piece in enumerate(pieces) if any(texts[at : at + 3]))


def _is_text(text: str) -> bool:
    if len(text) < 6:
        return False
    printable = sum(char.isprintable() or char in "\n\t\r" for char in text)
    return printable >= 0.97 * len(text) and sum(map(str.isalpha, text)) >= 0.5 * len(text)


def _from_base64(payload: str) -> bytes:
    bare = payload.rstrip("=").replace("-", "+").replace("_", "/")
    return base64.b64decode(bare + "=" * (-len(bare) % 4))


def _from_base32(payload: str) -> bytes:
    bare = payload.rstrip("=")
    return base64.b32decode(bare + "=" * (-len(bare) % 8))


def _from_hex(payload: str) -> bytes:
    digits = _HEX_MARKS.sub("", payload)
    return bytes.fromhex(digits[: len(digits) // 2 * 2])


def _from_binary(payload: str) -> bytes:
    bits = re.sub(r"[\s,]", "", payload)
    data = bytes(int(bits[start : start + 8], 2) for start in range(0, len(bits) // 8 * 8, 8))
    return data.decode("utf-8", "ignore").encode()  # one byte that is no text must not hide the others


def _from_morse(payload: str) -> bytes:
    plain = payload.replace("\u2022", ".").replace("\u2013", "-")
    words = re.split(r"\s*[/|]\s*|\s{3,}", plain)
    return " ".join("".join(_MORSE_LETTERS.get(letter, "") for letter in word.split()) for word in words).encode()


def _escaped(head: str) -> Iterator[str]:
    if len(_ESCAPE.findall(head)) >= 4:
        # Code points beyond the last are no characters: they stay as they are.
        text = _CODE_ESCAPE.sub(_unescape, html.unescape(unquote(head)))
        if text != head:
            yield text


def _unescape(match: re.Match[str]) -> str:
    code = int(match[1] or match[2] or match[3], 16)
    return chr(code) if code < 0x110000 and not 0xD800 <= code < 0xE000 else match[0]


def _tags(head: str) -> Iterator[str]:
    """Yield the text that is written in Unicode tag characters, which are invisible."""
    if head.isascii():
        return
    hidden = "".join(chr(ord(char) - 0xE0000) for char in head if 0xE0020 <= ord(char) <= 0xE007E)
    if len(hidden) >= 6:
        yield hidden


def _rot13(head: str) -> Iterator[str]:
    # If the text names the cipher, nothing has to be proved: a short payload has too few common words for that.
    margin = -1.0 if _NAMES_ROT13.search(head) else 0.1
    yield from _rewritten(
        head, "rot13", lambda text, _: common_word_share(text, "rot13") > common_word_share(text) + margin
    )


def _reversed(head: str) -> Iterator[str]:
    yield from _rewritten(
        head, "reversed", lambda text, _: common_word_share(text, "reversed") > common_word_share(text) + 0.1
    )


def _leetspeak(head: str) -> Iterator[str]:
    yield from _rewritten(head, "leetspeak", _is_leetspeak)


def _is_leetspeak(text: str, plain: str) -> bool:
    if sum(map(text.count, LEET_MARKS)) < 2:
        return False
    found = _count_leet_words(text)
    return found >= 2 and (
        found >= 0.3 * len(text.split()) or common_word_share(plain) > common_word_share(text) + 0.03
    )


def _count_leet_words(text: str) -> int:
    """Count the words with marks in a run that has a letter in the word or behind it; each run is read once."""
    found = run_end = last_letter = 0
    for word in _LEET_WORD.finditer(text):
        if word.start() >= run_end and (run := _UP_TO_LETTER.match(text, word.start())) is not None:
            run_end, last_letter = run.end(), run.end(1)
        found += word.start() < last_letter
    return found


def _rewritten(head: str, rewriting: Rewriting, is_likelier: Callable[[str, str], bool]) -> Iterator[str]:
    rewrite = REWRITE[rewriting]
    kept: list[str] = []
    for start in range(0, len(head), STRETCH):
        text = head[start : start + STRETCH]
        other = rewrite(text)
        kept += [other] if is_likelier(text, other) else _instruction_parts(text, other)
    if kept:
        yield "\n".join(kept)


def _instruction_parts(text: str, other: str) -> Iterator[str]:
    """Yield the surroundings of instruction words that a rewriting has and the text has not."""
    if not may_instruct(other):
        return
    lowered, plain = lower_in_place(other), lower_in_place(text)
    starts = sorted(lowered.find(word) for word in PLAIN_INSTRUCTION_WORDS if word in lowered and word not in plain)
    upto = 0
    for start in starts:
        if start >= upto:
            upto = start + _AROUND
            yield other[max(0, start - _AROUND) : upto]


def _spaced(head: str) -> Iterator[str]:
    if _SPACED.search(head):
        yield REWRITE["spaced"](head)


_DECODERS: tuple[tuple[str, Callable[[str], Iterator[str]]], ...] = (
    ("base64", lambda head: _payloads(_BASE64, head, _from_base64)),
    ("base32", lambda head: _payloads(_BASE32, head, _from_base32)),
    ("hex", lambda head: _payloads(_HEX, head, _from_hex)),
    ("binary", lambda head: _payloads(_BINARY, head, _from_binary)),
    ("morse", lambda head: _payloads(_MORSE, head, _from_morse)),
    ("escaped", _escaped),
    ("tags", _tags),
    ("rot13", _rot13),
    ("reversed", _reversed),
    ("leetspeak", _leetspeak),
    ("spaced", _spaced),
)

KINDS = tuple(kind for kind, _ in _DECODERS)
"""Names of the views, in the order in which they are returned."""

SHARED_DECODERS = tuple((kind, decode) for kind, decode in _DECODERS if kind in ("binary", "hex", "morse"))
"""The decoders that the package ``decoding`` uses, too: their kind, and the function that decodes a text."""
