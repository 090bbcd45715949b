"""Runs of base64, base32, base85 and hex that the plain search for such runs does not see.

That search wants a run in one piece, or one parted by white space. Here are runs that are quoted, hyphenated or dotted,
word by word, in small letters, turned (rot13, backwards), and the rarer encodings. Of all of them only what decodes to
text counts.

A text is taken apart once into words (``words``); what is looked at closer are long words, words with capitals where no
word has any, and tokens with signs in them. Of each some hundred are decoded, from wherever they are.
"""

import base64
import binascii
import codecs
import re
from collections.abc import Callable, Iterable, Iterator

from schemas.decoding.plausible import is_worded, text_of
from schemas.decoding.words import long_tokens, words_in

MOST_RUNS = 1_024
"""Runs of one kind that are decoded in a text: of more, some from everywhere."""

_MOST_SLOW = 64
"""The same of encodings that take a step of the interpreter for each character."""

_LONGEST = 32_768
_LONG, _LONG_TOKEN = 16, 20
_BASE64 = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
_TO_APART = bytes(ord("a") if code in _BASE64 or code == ord("=") else code for code in range(256))
_SPACED = b" ".join([b"a"] * 16)
"""What a run has in it whose characters stand apart."""

_NOT_BASE64 = bytes(code for code in range(256) if code not in _BASE64)
_HEX_DIGITS = "0123456789abcdefABCDEF"
_HEX_SET = frozenset(_HEX_DIGITS)
_MIXED = re.compile(r"[a-z][A-Z0-9]|[A-Z]{2}[a-z]|[0-9][A-Za-z]")
_AT_LINE_END = re.compile(r"-\r?\n(?=[A-Za-z0-9+/])|\r?\n> ?")
_APART = re.compile(r"(?<!\S)[A-Za-z0-9+/=](?: [A-Za-z0-9+/=]){15,}(?!\S)")
_BASE32 = re.compile(r"(?:[A-Z2-7]{16,}|(?=[a-z]*[2-7])[a-z2-7]{16,})=*")
_BASE85 = re.compile(r"(?=.*[a-z])(?=.*[A-Z])[0-9A-Za-z!#$%&()*+;<=>?@^_`{|}~-]{20,}")
_ASCII85 = re.compile(r"<~[!-uz\s]{10,}?~>")
_LONGEST_WORD = 64
_BETWEEN = 2
"""Other words that may stand between two that belong together: the names of a document's values."""

Decode = Callable[[str], bytes]


def payloads(text: str) -> Iterator[str]:
    """Yield what the runs of a text decode to."""
    data = text.encode("ascii", "replace")
    words = words_in(data)
    yield from _whole(words.long(_LONG))
    yield from _word_by_word(words.mixed(3, _LONGEST_WORD), _decoded_word)
    yield from _word_by_word(words.hex(4, _LONGEST_WORD), _decoded_hex)
    yield from _tokens(long_tokens(text, _LONG_TOKEN))
    if "\n>" in text or "-\n" in text:
        # What is quoted in mail, or parted at the ends of lines, is long words once it is laid together.
        yield from _whole(long_tokens(_AT_LINE_END.sub("", text), _LONG))
    if _SPACED in data.translate(_TO_APART):
        yield from _decoded((_bare(match[0]) for match in _APART.finditer(text)), _from_base64)
    if "<~" in text:
        runs = (match[0][:_LONGEST] for match in _ASCII85.finditer(text))
        yield from _decoded(runs, lambda run: base64.a85decode(run, adobe=True))


def _whole(words: Iterable[str]) -> Iterator[str]:
    long = _some(list(dict.fromkeys(word[:_LONGEST] for word in words)), MOST_RUNS)
    encoded = [word for word in long if _MIXED.search(word)]
    yield from _decoded(encoded, _from_base64)
    yield from _decoded((codecs.encode(word, "rot13") for word in encoded), _from_base64)
    yield from _decoded((word[::-1] for word in encoded), _from_base64)
    hexed = [word for word in long if not word.strip(_HEX_DIGITS)]
    yield from _decoded((word[: len(word) // 2 * 2] for word in hexed), bytes.fromhex)
    yield from _decoded((word[::-1] for word in hexed if len(word) % 2 == 0), bytes.fromhex)
    in_32 = _some([word for word in long if _BASE32.fullmatch(word)], _MOST_SLOW)
    yield from _decoded(in_32, lambda run: base64.b32decode(_filled(run.upper(), 8)))


def _tokens(tokens: Iterable[str]) -> Iterator[str]:
    """Yield what long tokens decode to that have signs in them: parted base64, and base85."""
    long = list(dict.fromkeys(token[:_LONGEST] for token in tokens if not token.isalnum()))
    bare = [_bare(token) for token in _some(long, MOST_RUNS)]
    yield from _decoded((run for run in bare if len(run) >= _LONG and _MIXED.search(run)), _from_base64)
    in_85 = [token for token in _some(long, MOST_RUNS) if len(token) <= 4_096 and _BASE85.fullmatch(token)]
    yield from _decoded(_some(in_85, _MOST_SLOW), base64.b85decode)


def _some(found: list[str], most: int) -> list[str]:
    """Return at most so many, from everywhere: what comes first must not hide what comes later."""
    if len(found) <= most:
        return found
    return [found[(2 * number + 1) * len(found) // (2 * most)] for number in range(most)]


def _decoded(found: Iterable[str], decode: Decode) -> Iterator[str]:
    for run in found:
        try:
            said = text_of(decode(run))
        except (ValueError, binascii.Error):
            continue
        if said:
            yield said


def _bare(run: str) -> str:
    return run.encode("ascii", "replace").translate(None, _NOT_BASE64).decode()


def _from_base64(run: str) -> bytes:
    bare = run.rstrip("=").replace("-", "+").replace("_", "/")
    if len(bare) % 4 == 1:
        bare = bare[:-1]
    return binascii.a2b_base64(_filled(bare, 4))


def _filled(run: str, block: int) -> str:
    bare = run.rstrip("=")
    return bare + "=" * (-len(bare) % block)


def _word_by_word(words: Iterable[tuple[int, str]], decode: Callable[[str], str]) -> Iterator[str]:
    """Yield what words decode to that follow one another, each given with its place among all words."""
    said: list[str] = []
    last = 0
    for place, word in words:
        found = decode(word)
        if not found:
            continue
        if place - last > _BETWEEN + 1:
            yield from _words(said)
            said = []
        said.append(found)
        last = place
    yield from _words(said)


def _decoded_word(run: str) -> str:
    if run.islower() or run.isupper() or not _MIXED.search(run):
        return ""
    bare = run.strip("-_")
    if len(bare) % 4 == 1 or "-" in bare or "_" in bare:
        return ""
    data = binascii.a2b_base64(_filled(bare, 4))
    return data.decode() if data.isascii() and data.decode().isprintable() else ""


def _decoded_hex(run: str) -> str:
    if run.isalpha() or not _HEX_SET.issuperset(run):
        return ""
    data = bytes.fromhex(run)
    return data.decode() if data.isascii() and data.decode().isprintable() else ""


def _words(said: list[str]) -> Iterator[str]:
    """Yield words that were encoded one by one: as words, and as pieces of one text."""
    if len(said) >= 3 and is_worded("".join(said)):
        yield " ".join(said)
        yield "".join(said)
