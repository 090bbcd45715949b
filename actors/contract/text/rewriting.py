"""Rewritings of a text that keep its characters, or one for each: what every guard undoes, in one list.

Reflex reads all of a text in all of them. The trained judges read an excerpt in them, which is chosen by telling words
in any of them, over all of the text (``telling``). What changes a text's length by more, such as base64, is encoding:
reflex finds the runs of three of these wherever they are, and ``views`` undoes more kinds, in what is read of a text.
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
    # Words are set apart by wider gaps, where the writer kept them apart at all.
    return _SINGLE.sub("", _WIDE.sub("\x00", text)).replace("\x00", " ")


REWRITE: Mapping[Rewriting, Callable[[str], str]] = {
    "spaced": _spaced,
    "leetspeak": _leetspeak,
    "rot13": _rot13,
    "reversed": _reversed,
}
"""How each is undone, in the order in which guards try them."""

_SOUGHT = {
    how: frozenset(word.encode() for word in map(rewrite, COMMON))
    for how, rewrite in ((None, str), ("rot13", _rot13), ("reversed", _reversed))
}
"""Common words as they stand in a text that is rewritten."""


@lru_cache(maxsize=8)
def likeness(text: str, how: Rewriting | None = None) -> float:
    """Return the share of common words of five European languages among the words of a text, or of it rewritten."""
    if not text.isascii():
        return _share(letters_of(fold(text if how is None else REWRITE[how](text))), COMMON)
    if how is None or how in _SOUGHT:
        # These keep words apart as they are: the text's are held against common words in rot13, or backwards.
        return _share(_words(text), _SOUGHT[how])
    return _share(_words(REWRITE[how](text)), _SOUGHT[None])


def _share(words: "list[str] | list[bytes]", common: "frozenset[str] | frozenset[bytes]") -> float:
    return sum(map(common.__contains__, words)) / max(len(words), 6)


@lru_cache(maxsize=8)
def _words(text: str) -> list[bytes]:
    # Several rewritings are held against the same text: it is taken apart once.
    return text.lower().encode("ascii").translate(_NO_LETTERS).split()
