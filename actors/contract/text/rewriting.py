"""Undoes rewritings of a text: spaced letters, leetspeak, rot13 and reversed text. All guards undo the same four.

A rewriting moves or replaces characters one by one, or adds spaces. Reflex reads the whole text with each undone. The
trained judges (linear classifiers) read an excerpt with each undone; it is chosen by instruction words (typical of
instructions to a model, ``instruction_words``) in any rewriting of the whole text. Other changes, such as base64, are
encodings. Reflex finds the runs of three encodings in the whole text; ``decoded_views`` undoes further ones in the part
of the text that is read.
"""

import codecs
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Literal

from actors.contract.text.folding import fold
from actors.contract.text.judge.instruction_words import LEET
from actors.contract.text.tokens import letters_of

Rewriting = Literal["spaced", "leetspeak", "rot13", "reversed"]
"""The rewritings that are undone."""

_NO_LETTERS = bytes(ord(" ") if not chr(code).isalpha() or code >= 128 else code for code in range(256))
# A gap of several spaces or a line end; a single space before a single character. ``\x00`` marks wide gaps meanwhile.
_WIDE = re.compile(r"[ \u00a0]{2,}|\s*\n\s*")
_SPACES = re.compile(r"[ \u00a0]{2,}")
_BLANK = re.compile(r"\s{2,}|\n")
_SINGLE = re.compile(r"(?<=[^\s\x00])[ \u00a0](?=[^\s\x00](?:[ \u00a0\x00]|$))")
COMMON_WORDS = frozenset(
    re.findall(
        r"\w+",
        "a about all an and are as at be but by can do for from give how i if ignore in is it me my no not of on or "
        "please say show so tell that the this to was we what which who why will with write you your der die das und "
        "ist sie nicht ich ein eine von zu mit wie was auf alle den im le la les et est vous que pour dans un une de "
        "el los en y es un una por con il di e che per non sono ",
    )
)
"""Common words of five European languages."""


def _rot13(text: str) -> str:
    return codecs.decode(text, "rot13")


def _reversed(text: str) -> str:
    return text[::-1]


def _leetspeak(text: str) -> str:
    return text.translate(LEET)


def _spaced(text: str) -> str:
    # Wider gaps separate words, if the writer separated words at all.
    return _SINGLE.sub("", _BLANK.sub(_narrowed, text)).replace("\x00", " ")


def _narrowed(blank: re.Match[str]) -> str:
    # Each run of white space by itself: a search for a line end from each character of a run without one takes
    # quadratic time.
    return (_WIDE if "\n" in blank[0] else _SPACES).sub("\x00", blank[0])


REWRITE: Mapping[Rewriting, Callable[[str], str]] = {
    "spaced": _spaced,
    "leetspeak": _leetspeak,
    "rot13": _rot13,
    "reversed": _reversed,
}
"""How each rewriting is undone, in the order in which guards try them."""

_COMMON_REWRITTEN = {
    rewriting: frozenset(word.encode() for word in map(rewrite, COMMON_WORDS))
    for rewriting, rewrite in ((None, str), ("rot13", _rot13), ("reversed", _reversed))
}
"""Common words, in their plain form (None) and as the rewritings write them."""


@lru_cache(maxsize=8)
def common_word_share(text: str, rewriting: Rewriting | None = None) -> float:
    """Return the share of common words of five European languages in a text, or in the text with a rewriting undone."""
    if not text.isascii():
        return _share(letters_of(fold(text if rewriting is None else REWRITE[rewriting](text))), COMMON_WORDS)
    if rewriting is None or rewriting in _COMMON_REWRITTEN:
        # These rewritings keep word boundaries, so the words of the text are compared with rewritten common words.
        return _share(_words(text), _COMMON_REWRITTEN[rewriting])
    return _share(_words(REWRITE[rewriting](text)), _COMMON_REWRITTEN[None])


def _share(words: "list[str] | list[bytes]", common: "frozenset[str] | frozenset[bytes]") -> float:
    # Of fewer than six words, a common one proves little.
    return sum(map(common.__contains__, words)) / max(len(words), 6)


@lru_cache(maxsize=8)
def _words(text: str) -> list[bytes]:
    # Cached: several rewritings are tried on the same text.
    return text.lower().encode("ascii").translate(_NO_LETTERS).split()
