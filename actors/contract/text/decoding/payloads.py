"""Decodes runs of base64, base32, base85 and hex that the plain search for such runs (``decoded_views``) does not find.

That search needs a run in one piece, or separated by white space. This module finds runs that are quoted, hyphenated or
dotted, encoded word by word, in lower case, or transformed (rot13, reversed), and the rarer encodings. A run counts
only if it decodes to text.

A text is split once into words (``encoded_words``). Long words, words with capitals in unusual places, and tokens with
symbols in them are examined. ``MOST_RUNS`` of each kind, spread over the text, are decoded, and at most ``MOST_RUNS``
of the others, which must begin like text. Runs beyond that are counted.
"""

import base64
import binascii
import codecs
import re
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from actors.contract.text.decoding.base85 import base85
from actors.contract.text.decoding.disguised_stretches import Undecoded
from actors.contract.text.decoding.encoded_words import long_tokens, words_in
from actors.contract.text.decoding.plausibility import PRINTED, is_mostly_letters, text_of

MOST_RUNS = 1_024
"""If a text has more runs of one kind, this many are decoded from all over the text, and at most this many that begin
like text."""

_BEGINNING = 40  # a multiple of 4, 5 and 8
"""Characters by which the beginning is checked: whole blocks in each of the encodings."""

_LONG, _LONG_TOKEN = 16, 20
"""Fewest characters of a word and of a token that may be an encoded run by itself."""

_BASE64 = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
_BASE64_AS_A = bytes(ord("a") if code in _BASE64 or code == ord("=") else code for code in range(256))
_SIXTEEN_SPACED = b" ".join([b"a"] * 16)
"""A substring of every base64 run with spaces between its characters, once ``_BASE64_AS_A`` was applied."""

_NOT_BASE64 = bytes(code for code in range(256) if code not in _BASE64)
_HEX_DIGITS = "0123456789abcdefABCDEF"
_HEX_SET = frozenset(_HEX_DIGITS)
# Changes between kinds of characters that few words have, and nearly all base64; line ends within a run that is
# hyphenated, quoted in mail, or inside a string of a program.
_MIXED = re.compile(r"[a-z][A-Z0-9]|[A-Z]{2}[a-z]|[0-9][A-Za-z]")
_AT_LINE_END = re.compile(r"-\r?\n(?=[A-Za-z0-9+/])|\r?\n> ?")
_ESCAPED_END = re.compile(r"(?<=[A-Za-z0-9+/=])(?:\\r)?\\n(?=[A-Za-z0-9+/])")
_SPACED_BASE64 = re.compile(r"(?<!\S)[A-Za-z0-9+/=](?: [A-Za-z0-9+/=]){15,}(?!\S)")
_BASE32 = re.compile(r"(?:[A-Z2-7]{16,}|(?=[a-z]*[2-7])[a-z2-7]{16,})=*")
_ASCII85 = re.compile(r"<~[!-uz\s]{10,}?~>")
_LONGEST_WORD = 64
"""Most characters of a word that may be encoded by itself, in a text encoded word by word."""

_IS_PRINTED = np.isin(np.arange(256), np.frombuffer(PRINTED, dtype=np.uint8))
_MOST_BETWEEN = 2
"""Most other words between two encoded words of one text, such as the names of a document's values."""

Decode = Callable[[str], bytes]
"""An encoded word -> its bytes."""


def decode_payloads(text: str) -> Iterator[str | Undecoded]:
    """Yield what the runs of a text decode to."""
    data = text.encode("ascii", "replace")
    words = words_in(data)
    yield from _long_words(words.long(_LONG))
    yield from _word_by_word(words.mixed(3, _LONGEST_WORD), _decoded_word)
    yield from _word_by_word(words.hex(4, _LONGEST_WORD), _decoded_hex)
    yield from _tokens(long_tokens(text, _LONG_TOKEN))
    yield from base85(text)
    if "\n>" in text or "-\n" in text:
        # Text that is quoted in mail, or split at line ends, gives long words once its lines are joined.
        yield from _long_words(long_tokens(_AT_LINE_END.sub("", text), _LONG))
    if "\\n" in text and (joined := _ESCAPED_END.sub("", text)) != text:
        # Lines inside a string of a document or a program.
        yield from _long_words(words_in(joined.encode("ascii", "replace")).long(_LONG))
    if _SIXTEEN_SPACED in data.translate(_BASE64_AS_A):
        yield from _decoded([_base64_only(match[0]) for match in _SPACED_BASE64.finditer(text)], _from_base64)
    if "<~" in text:
        yield from _decoded([match[0][2:-2] for match in _ASCII85.finditer(text)], base64.a85decode)


def _long_words(words: Iterable[str]) -> Iterator[str | Undecoded]:
    long = list(dict.fromkeys(words))
    encoded = [word for word in long if _MIXED.search(word)]
    backwards = [word[::-1] for word in encoded]
    yield from _decoded(encoded, _from_base64)
    yield from _decoded(encoded, lambda run: _from_base64(codecs.encode(run, "rot13")))
    yield from _decoded(backwards, _from_base64)
    hexed = [word for word in long if not word.strip(_HEX_DIGITS)]
    yield from _decoded([word[: len(word) // 2 * 2] for word in hexed], bytes.fromhex)
    yield from _decoded([word[::-1] for word in hexed if len(word) % 2 == 0], bytes.fromhex)
    yield from _decoded([word for word in long if _BASE32.fullmatch(word)], _from_base32)


def _tokens(tokens: Iterable[str]) -> Iterator[str | Undecoded]:
    """Yield what long tokens that contain symbols decode to: base64 with separators."""
    long = list(dict.fromkeys(token for token in tokens if not token.isalnum()))
    bare = map(_base64_only, long)
    yield from _decoded([run for run in bare if len(run) >= _LONG and _MIXED.search(run)], _from_base64)


def _decoded(runs: Sequence[str], decode: Decode) -> Iterator[str | Undecoded]:
    """Yield the runs that decode to text, and the number of characters that were not decoded."""
    chosen, undecoded = runs, 0
    if len(runs) > MOST_RUNS:
        # A sample from the whole text: what comes first must not hide what comes later.
        some = {(2 * number + 1) * len(runs) // (2 * MOST_RUNS) for number in range(MOST_RUNS)}
        others = [run for index, run in enumerate(runs) if index not in some and len(run) >= _BEGINNING]
        likely = _beginning_as_text(others, decode)
        chosen = [*(runs[index] for index in sorted(some)), *likely[:MOST_RUNS]]
        undecoded = sum(map(len, likely[MOST_RUNS:]))
    for run in chosen:
        try:
            decoded = text_of(decode(run))
        except (ValueError, binascii.Error):
            continue
        if decoded:
            yield decoded
    if undecoded:
        yield Undecoded(undecoded)


def _beginning_as_text(runs: Sequence[str], decode: Decode) -> Sequence[str]:
    """Return the runs whose first characters decode to printable ones; all are decoded in one call."""
    beginnings = [run[:_BEGINNING] for run in runs]
    try:
        data = decode("".join(beginnings))
    except (ValueError, binascii.Error):
        data = b""
    if not data or len(data) % len(runs):
        # A single invalid run makes the common call fail: decode them one by one.
        return [run for run, begin in zip(runs, beginnings, strict=True) if _is_printed(begin, decode)]
    printed = _IS_PRINTED.take(np.frombuffer(data, dtype=np.uint8)).reshape(len(runs), -1).all(axis=1)
    return [runs[index] for index in np.flatnonzero(printed).tolist()]


def _is_printed(run: str, decode: Decode) -> bool:
    try:
        return not decode(run).translate(None, PRINTED)
    except (ValueError, binascii.Error):
        return False


def _base64_only(run: str) -> str:
    return run.encode("ascii", "replace").translate(None, _NOT_BASE64).decode()


def _from_base64(run: str) -> bytes:
    bare = run.rstrip("=").replace("-", "+").replace("_", "/")
    if len(bare) % 4 == 1:
        bare = bare[:-1]
    return binascii.a2b_base64(_padded(bare, 4))


def _from_base32(run: str) -> bytes:
    return base64.b32decode(_padded(run.upper(), 8))


def _padded(run: str, block: int) -> str:
    bare = run.rstrip("=")
    return bare + "=" * (-len(bare) % block)


def _word_by_word(words: Iterable[tuple[int, str]], decode: Callable[[str], str]) -> Iterator[str]:
    """Yield what successive encoded words decode to; each word comes with its index among all words."""
    successive: list[str] = []
    last = 0
    for index, word in words:
        decoded = decode(word)
        if not decoded:
            continue
        if index - last > _MOST_BETWEEN + 1:
            yield from _words(successive)
            successive = []
        successive.append(decoded)
        last = index
    yield from _words(successive)


def _decoded_word(run: str) -> str:
    if run.islower() or run.isupper() or not _MIXED.search(run):
        return ""
    bare = run.strip("-_")
    if len(bare) % 4 == 1 or "-" in bare or "_" in bare:
        return ""
    data = binascii.a2b_base64(_padded(bare, 4))
    return data.decode() if data.isascii() and data.decode().isprintable() else ""


def _decoded_hex(run: str) -> str:
    if run.isalpha() or not _HEX_SET.issuperset(run):
        return ""
    data = bytes.fromhex(run)
    return data.decode() if data.isascii() and data.decode().isprintable() else ""


def _words(decoded: list[str]) -> Iterator[str]:
    """Yield words that were encoded one by one: joined as words, and joined as pieces of one text."""
    if len(decoded) >= 3 and is_mostly_letters("".join(decoded)):
        yield " ".join(decoded)
        yield "".join(decoded)
