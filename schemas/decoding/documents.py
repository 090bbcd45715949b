"""An order in pieces: over the values of a JSON document, the variables of a program, or with tags within its words."""

import re
from collections.abc import Iterator
from itertools import islice

from schemas.decoding.stretches import stretches_of

_STRING = re.compile(
    r"""(?:^|[\[,:=(+{])\s*(?:"((?:[^"\\\n]|\\.){0,200})"|'((?:[^'\\\n]|\\.){0,200})')(?!\s*:)""", re.M
)
_FEWEST = 3
_MOST = 1_024
"""Values that are laid together; of more, the first."""

_PIECE = 32
"""Characters that the pieces have on average at most: longer values say what they say by themselves."""

_TAG = r"<!--[^>]{0,200}-->|</?[A-Za-z][^<>]{0,200}>"
_TAGS = re.compile(_TAG)
_IN_WORD = re.compile(rf"\w(?:{_TAG})+\w")


def documents(text: str) -> Iterator[str]:
    """Yield the values of a document laid together, as words and as parts of words; and a page without its tags."""
    if text.count('"') + text.count("'") >= 2 * _FEWEST:
        strings = islice(_STRING.finditer(text), _MOST)
        found = [match[1] or match[2] or "" for match in strings]
        if len(found) >= _FEWEST and sum(map(len, found)) <= _PIECE * len(found):
            yield " ".join(found)
            yield "".join(found)
    if "<" in text and _IN_WORD.search(text):
        yield _TAGS.sub("", stretches_of(text, (match.span() for match in _IN_WORD.finditer(text))))
