"""Splits a folded text into tokens: words, numbers, line ends and single symbols."""

import re
from functools import lru_cache

from actors.contract.text.folding import SPACELESS, fold, fold_word

_LETTERS = re.compile(r"[^\W\d_]+")
_NO_LETTERS = bytes(ord(" ") if not chr(code).isalpha() or code >= 128 else code for code in range(256))
_TOKEN = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?|\d+|\n+|[^\w\s]|_")


def split_tokens(folded: str) -> list[str]:
    """Return the tokens of a folded text; letters of scripts without spaces are single tokens, look-alikes undone."""
    found: list[str] = _TOKEN.findall(folded)
    if not _has_other_letters(folded):
        return found
    if not SPACELESS.search(folded):
        return list(map(fold_word, found))
    tokens: list[str] = []
    for token in found:
        if SPACELESS.search(token):
            tokens.extend(token)
        else:
            tokens.append(fold_word(token))
    return tokens


def letters_of(text: str) -> list[str]:
    """Return the runs of letters of a text."""
    if _has_other_letters(text):
        return _LETTERS.findall(text)
    # Symbols beyond ASCII separate words, as a question mark does.
    return text.encode("ascii", "replace").translate(_NO_LETTERS).decode().split()


def _has_other_letters(text: str) -> bool:
    return not text.isascii() and any(each > "\x7f" and each.isalnum() for each in set(text))


@lru_cache(maxsize=16)
def tokens_of(text: str) -> tuple[str, ...]:
    """Return the tokens of a text, folded; the latest are cached, since several classifiers read the same text."""
    return tuple(split_tokens(fold(text)))
