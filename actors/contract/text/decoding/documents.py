"""An order in pieces: over the values of a JSON document, the variables of a program, or with tags within its words."""

import re
from collections.abc import Iterator

from actors.contract.text.decoding.left import Left
from actors.contract.text.decoding.stretches import stretches_of
from actors.contract.text.excerpt import excerpt_of

_QUOTE = re.compile("[\"']")
_VALUE = r"""(?:"((?:[^"\\\n]|\\.){0,200})"|'((?:[^'\\\n]|\\.){0,200})')(?!\s*:)"""
_STRING = re.compile(_VALUE)
_BEGUN_STRING = re.compile(rf"(?:^|[\[,:=(+{{])\s*{_VALUE}", re.M)
_BEFORE = frozenset("[,:=(+{")
"""What stands before a value, if it does not begin a line; with white space between or without."""

_FEW_QUOTES = 4_096
"""Quotes that are looked at one by one; of more, one search of the whole text is faster."""

_FEWEST = 3
_MOST = 32_768
"""Characters of values laid together that are read as they are; of more, what stands around telling words."""

_PIECE = 64
"""Characters that a piece has at most: longer values say what they say by themselves."""

_TAG = r"<!--[^>]{0,200}-->|</?[A-Za-z][^<>]{0,200}>"
_TAGS = re.compile(_TAG)
_IN_WORD = re.compile(rf"\w(?:{_TAG})+\w")


def documents(text: str) -> Iterator[str | Left]:
    """Yield the values of a document laid together, as words and as parts of words; and a page without its tags."""
    if text.count('"') + text.count("'") >= 2 * _FEWEST:
        found = [value for value in _strings(text) if len(value) <= _PIECE]
        if len(found) >= _FEWEST:
            for between in (" ", ""):
                shown, unread = excerpt_of(between.join(found), _MOST)
                yield shown
                if unread:
                    yield Left(unread)
    if "<" in text and _IN_WORD.search(text):
        yield _TAGS.sub("", stretches_of(text, (match.span() for match in _IN_WORD.finditer(text))))


def _strings(text: str) -> Iterator[str]:
    """Yield what stands in quotes and is a value, not a name."""
    if text.count('"') + text.count("'") > _FEW_QUOTES:
        yield from (match[1] or match[2] or "" for match in _BEGUN_STRING.finditer(text))
        return
    upto = 0
    quote = _QUOTE.search(text)
    while quote is not None:
        place = quote.start()
        match = _STRING.match(text, place) if _may_begin(text, upto, place) else None
        if match is not None:
            yield match[1] or match[2] or ""
            upto = match.end()
        quote = _QUOTE.search(text, place + 1 if match is None else upto)


def _may_begin(text: str, first: int, place: int) -> bool:
    """Return whether a value may begin at a place, as what stands before it from ``first`` on says."""
    before = place - 1
    while before >= first and text[before].isspace():
        if text[before] == "\n":
            return True
        before -= 1
    return text[before] in _BEFORE if before >= first else first == 0
