"""A folded text as tokens: words, numbers, line ends and single marks."""

import re

from schemas.reading.folding import SPACELESS, fold_word

_TOKEN = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?|\d+|\n+|[^\w\s]|_")


def split_tokens(folded: str) -> list[str]:
    """Return the tokens of a folded text; letters of scripts without spaces stand alone, look-alikes are undone."""
    found = _TOKEN.findall(folded)
    if folded.isascii():
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
