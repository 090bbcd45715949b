"""Rewritings of a text that keep its characters or replace them one by one; all guards undo the same list.

Reflex reads the whole text in each rewriting. The trained judges read an excerpt in each; it is chosen by instruction
words in any rewriting of the whole text (``instruction_words``). A change that alters the length by more, such as
base64, is an encoding. Reflex finds the runs of three encodings in the whole text; ``views`` undoes further ones in the
part of the text that is read.
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

_NO_LETTERS = bytes(ord(" ") if not chr(code).isalpha() or code >= 128 else code for code in range(256))
_WIDE = re.compile(r"[ \u00a0]{2,}|\s*\n\s*")
_SINGLE = re.compile(r"(?<=[^\s\x00])[ \u00a0](?=[^\s\x00](?:[ \u00a0\x00]|$))")
COMMON = frozenset(
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
    return _SINGLE.sub("", _WIDE.sub("\x00", text)).replace("\x00", " ")


REWRITE: Mapping[Rewriting, Callable[[str], str]] = {
    "spaced": _spaced,
    "leetspeak": _leetspeak,
    "rot13": _rot13,
    "reversed": _reversed,
}
"""How each rewriting is undone, in the order in which guards try them."""

_SOUGHT = {
    how: frozenset(word.encode() for word in map(rewrite, COMMON))
    for how, rewrite in ((None, str), ("rot13", _rot13), ("reversed", _reversed))
}
"""Common words in their rewritten form."""


@lru_cache(maxsize=8)
def likeness(text: str, how: Rewriting | None = None) -> float:
    """Return the share of common words of five European languages in a text, or in the text with a rewriting undone."""
    if not text.isascii():
        return _share(letters_of(fold(text if how is None else REWRITE[how](text))), COMMON)
    if how is None or how in _SOUGHT:
        # These rewritings keep word boundaries, so the words of the text are compared with rewritten common words.
        return _share(_words(text), _SOUGHT[how])
    return _share(_words(REWRITE[how](text)), _SOUGHT[None])


def _share(words: "list[str] | list[bytes]", common: "frozenset[str] | frozenset[bytes]") -> float:
    return sum(map(common.__contains__, words)) / max(len(words), 6)


@lru_cache(maxsize=8)
def _words(text: str) -> list[bytes]:
    # Cached: several rewritings are tried on the same text.
    return text.lower().encode("ascii").translate(_NO_LETTERS).split()
