"""Finds an instruction split over the values of a JSON document, the variables of a program, or by tags in words.

Instruction words are words typical of instructions to a model.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

from actors.contract.text.decoding.disguised_stretches import Undecoded, stretches_of
from actors.contract.text.decoding.escapes import TAG
from actors.contract.text.excerpt import excerpt_of

_QUOTE = re.compile("[\"']")
_VALUE = r"""(?:"((?:[^"\\\n]|\\.){0,200})"|'((?:[^'\\\n]|\\.){0,200})')(?!\s*:)"""
_STRING = re.compile(_VALUE)
# Without ``\n`` behind ``^``: each line of a blank stretch would be a beginning, and each would read the rest of it.
_BEGUN_STRING = re.compile(rf"(?:^[^\S\n]*+|[\[,:=(+{{]\s*+){_VALUE}", re.M)
_BEFORE = frozenset("[,:=(+{")
"""What precedes a value that does not begin a line, with or without white space between."""

_FEW_QUOTES = 4_096
"""Up to this many quotes are examined one by one; for more, one search of the whole text is faster."""

# A quoted or bare name before ``:`` or ``=``, but not ``==`` or ``://``; or the name of a tag.
_NAME = re.compile(
    r"""(?<![\w.-])(?:"([^"\\\n:=]{1,64})"|'([^'\\\n:=]{1,64})'|([A-Za-z_][\w.-]{0,63}))[ \t]{0,8}[:=](?![=/])"""
    r"|<([A-Za-z][\w.-]{0,63})(?=[\s/>])"
)
"""A name in a document, before its value or its attributes."""

_SHORT = re.compile(r"""[ \t]{0,8}["']([A-Za-z][^"'\\\n]{0,31})["']""")
"""A short value: names and values may form one sentence, such as ``"ignore": "all", "previous": "instructions"``."""

_FEWEST = 3
"""Fewest values or names that are joined."""

_MOST = 32_768
"""Up to this many characters of joined values are read whole; otherwise only the surroundings of instruction words."""

_LONGEST_VALUE = 64
"""Most characters of a piece: a longer value is read as a text of its own elsewhere."""

_PADDING = re.compile(r"[\x00-\x09\x0b-\x1f !#-&*./;?@^-`|~\x7f-\xa9\xab-\xb4\u2000-\u206f\u3000-\u3003\ufeff-]{9,}")
"""White space and symbols that only lengthen a piece; punctuation that documents are made of is not included."""

_ESCAPED_BLANK = re.compile(r"\\(?:[tnrf]|u(?:00[0-2a][0-9a-d]|20[0-6][0-9a-f]|3000|feff))", re.I)

_SEPARATOR = "\n~\n"
"""The separator of readings that are returned as one text: as separate texts too many might be left unread.

The number of decoded texts that are read of one text is limited (``nested_decoding``).
"""

_SEAM = "\u034f"
"""The separator of values during the search for instruction words: it is invisible, so that halves form a word."""

_TAGS = re.compile(TAG)


def join_document_values(text: str) -> Iterator[str | Undecoded]:
    """Yield joined values of a document, as words and as parts of words; its joined names; and a page without tags."""
    if text.count('"') + text.count("'") >= 2 * _FEWEST:
        found = [value for value in _strings(_without_padding(text)) if len(value) <= _LONGEST_VALUE]
        if len(found) >= _FEWEST:
            yield from _joined(found)
    if text.count(":") + text.count("=") + text.count("<") >= _FEWEST:
        yield from _names(text)
    if "<" in text:
        untagged, seams = _without_tags(text)
        if seams:
            yield stretches_of(untagged, ((seam, seam) for seam in seams))


def _names(text: str) -> Iterator[str | Undecoded]:
    """Yield the names of a document joined together, and names with short values where these follow each other.

    In a table the names repeat with every row: a pair of neighbours that occurred before is left out.
    """
    names, parts = list[str](), list[str]()
    for match in _NAME.finditer(text):
        name = next(filter(None, match.groups()), "")
        names.append(name)
        parts.append(name)
        if (value := _SHORT.match(text, match.end())) is not None:
            parts.append(value[1])
    times = Counter(names)
    once = [name for name in names if times[name] == 1]  # without the names that repeat between them
    readings = dict[str, None]()
    for each in (names, once, parts):
        if len(kept := _without_repeated_pairs(each)) >= _FEWEST:
            for joined in _joined(kept):
                if isinstance(joined, Undecoded):
                    yield joined
                else:
                    readings[joined] = None
    if readings:
        yield _SEPARATOR.join(readings)


def _without_repeated_pairs(names: Sequence[str]) -> Sequence[str]:
    pairs = set[tuple[str, str]]()
    kept = list(names[:1])
    for pair in pairwise(names):
        if pair not in pairs:
            pairs.add(pair)
            kept.append(pair[1])
    return kept


def _without_padding(text: str) -> str:
    return _PADDING.sub(" ", _ESCAPED_BLANK.sub(" ", text) if "\\" in text else text)


def _without_tags(text: str) -> tuple[str, list[int]]:
    """Return a text without its tags, and the positions where one or several tags were inside a word."""
    between = _TAGS.split(text)
    joined = f"{''.join(between)} "
    seams = sorted(set(accumulate(map(len, between[:-1]))))
    return joined[:-1], [seam for seam in seams if seam and joined[seam - 1].isalnum() and joined[seam].isalnum()]


def _joined(values: Sequence[str]) -> Iterator[str | Undecoded]:
    """Yield values joined as words and as parts of words; of many values, only the surroundings of instruction words.

    An instruction word that is split over values is found only where these are joined without a space. A whole word is
    found only where they are not. So the surroundings are yielded both ways.
    """
    whole = _SEAM.join(values)
    words, unspaced = excerpt_of(" ".join(values), _MOST), excerpt_of(whole, _MOST)
    yield words.text
    if unspaced.text != whole:
        yield unspaced.text.replace(_SEAM, " ")
    yield unspaced.text.replace(_SEAM, "")
    for excerpt in (words, unspaced):
        if excerpt.unread:
            yield Undecoded(excerpt.unread)


def _strings(text: str) -> Iterator[str]:
    """Yield the quoted strings that are values, not names."""
    if text.count('"') + text.count("'") > _FEW_QUOTES:
        yield from (match[1] or match[2] or "" for match in _BEGUN_STRING.finditer(text))
        return
    upto = 0
    quote = _QUOTE.search(text)
    while quote is not None:
        position = quote.start()
        match = _STRING.match(text, position) if _may_begin(text, upto, position) else None
        if match is not None:
            yield match[1] or match[2] or ""
            upto = match.end()
        quote = _QUOTE.search(text, position + 1 if match is None else upto)


def _may_begin(text: str, first: int, position: int) -> bool:
    """Return whether a value may begin at ``position``, judged by the text from ``first`` up to it."""
    before = position - 1
    while before >= first and text[before].isspace():
        if text[before] == "\n":
            return True
        before -= 1
    return text[before] in _BEFORE if before >= first else first == 0
