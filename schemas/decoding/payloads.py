"""Runs of base64, base32, base85 and hex that the plain search for such runs does not see.

That search wants a run in one piece, or one parted by white space. Here are runs that are quoted, hyphenated or dotted,
word by word, in small letters, and the rarer encodings. Of all of them only what decodes to text counts.
"""

import base64
import binascii
import re
from collections.abc import Callable, Iterator

from schemas.decoding.plausible import is_worded, text_of

MOST_RUNS = 512
"""Runs of one kind that are decoded in a text."""

_LONGEST = 32_768
_SIGNS = "A-Za-z0-9+/"
_WHOLE = re.compile(rf"(?<![{_SIGNS}_-])[A-Za-z0-9+/_-]{{16,}}={{0,2}}")
# A word with a capital or a digit where no word has one: nearly all words of base64 have.
_MIXED = re.compile(
    rf"(?<![{_SIGNS}])(?=[{_SIGNS}]*?(?:[a-z][A-Z0-9]|[A-Z]{{2}}[a-z]|[0-9][A-Za-z]))[{_SIGNS}]{{3,}}={{0,2}}"
)
_PARTED = re.compile(
    rf"(?<![{_SIGNS}])(?=[{_SIGNS}]*[A-Z])[{_SIGNS}]{{1,76}}(-\r?\n|\r?\n> ?|[-._|*:,~ ])[{_SIGNS}]{{1,76}}"
    rf"(?:\1[{_SIGNS}]{{1,76}}){{2,}}={{0,2}}"
)
_PARTING = re.compile(r"-\r?\n|\r?\n> ?|[-._|*:,~ ]")
_BASE32 = re.compile(r"(?<![A-Za-z0-9])(?:[A-Z2-7]{16,}|(?=[a-z]*[2-7])[a-z2-7]{16,})={0,6}(?![A-Za-z0-9])")
_BASE85 = re.compile(r"(?<!\S)[0-9A-Za-z!#$%&()*+;<=>?@^_`{|}~-]{20,}(?!\S)")
_ASCII85 = re.compile(r"<~([!-uz\s]{10,}?)~>")
_HEX = re.compile(r"(?<![0-9A-Za-z])(?:[0-9a-fA-F]{2}){2,}(?:[\s,;-]{1,3}(?:[0-9a-fA-F]{2}){2,}){2,}(?![0-9A-Za-z])")
_HEX_WHOLE = re.compile(r"(?<![0-9A-Za-z])(?:[0-9a-fA-F]{2}){8,}(?![0-9A-Za-z])")
_NEAR = 12
"""Characters between two words of base64 that belong together."""


def payloads(text: str) -> Iterator[str]:
    """Yield what the runs of a text decode to."""
    yield from runs(text)
    yield from _word_by_word(text)
    yield from _matched(_PARTED, text, lambda run: _from_base64(_PARTING.sub("", run)))
    yield from _matched(_BASE32, text, lambda run: base64.b32decode(_filled(run.upper(), 8)))
    if "<~" in text:
        yield from _matched(_ASCII85, text, lambda run: base64.a85decode(run, adobe=True))
    yield from _matched(_BASE85, text, base64.b85decode)
    yield from _hex_words(text)


def runs(text: str) -> Iterator[str]:
    """Yield what base64 and hex in one piece decode to: all that is looked for in a text that is turned."""
    yield from _matched(_WHOLE, text, _from_base64)
    yield from _matched(_HEX_WHOLE, text, bytes.fromhex)


def _matched(pattern: re.Pattern[str], text: str, decode: Callable[[str], bytes]) -> Iterator[str]:
    for number, match in enumerate(pattern.finditer(text)):
        if number >= MOST_RUNS:
            return
        said = _decoded(match[0][:_LONGEST], decode)
        if said:
            yield said


def _decoded(run: str, decode: Callable[[str], bytes]) -> str:
    try:
        return text_of(decode(run))
    except (ValueError, binascii.Error):
        return ""


def _from_base64(run: str) -> bytes:
    bare = run.rstrip("=").replace("-", "+").replace("_", "/")
    if len(bare) % 4 == 1:
        bare = bare[:-1]
    return binascii.a2b_base64(_filled(bare, 4))


def _filled(run: str, block: int) -> str:
    bare = run.rstrip("=")
    return bare + "=" * (-len(bare) % block)


def _word_by_word(text: str) -> Iterator[str]:
    said: list[str] = []
    end = 0
    for number, match in enumerate(_MIXED.finditer(text)):
        word = _decoded_word(match[0]) if number < MOST_RUNS else ""
        if not word or match.start() - end > _NEAR:
            yield from _words(said)
            said = []
        if word:
            said.append(word)
        end = match.end()
    yield from _words(said)


def _decoded_word(run: str) -> str:
    if len(run) % 4 == 1 or len(run) > 64:
        return ""
    data = _from_base64(run)
    return data.decode() if data.isascii() and data.decode().isprintable() else ""


def _words(said: list[str]) -> Iterator[str]:
    """Yield words that were encoded one by one: as words, and as pieces of one text."""
    if len(said) >= 3 and is_worded("".join(said)):
        yield " ".join(said)
        yield "".join(said)


def _hex_words(text: str) -> Iterator[str]:
    for number, match in enumerate(_HEX.finditer(text)):
        if number >= MOST_RUNS:
            return
        words = [bytes.fromhex(word) for word in re.findall(r"[0-9a-fA-F]+", match[0][:_LONGEST])]
        if all(map(bytes.isascii, words)) and is_worded(b"".join(words).decode()):
            yield b" ".join(words).decode()
