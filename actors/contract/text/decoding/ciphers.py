"""Undoes ciphers that replace letters (shifts by any number, the mirrored alphabet, rot47), and reversed text.

A cipher is recognised by common words in their enciphered form: several of them close together, with hardly any plain
common word between. The whole text is searched, since a cipher may be anywhere in a text that is otherwise plain.
"""

import codecs
import re
import string
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from typing import NamedTuple

import numpy as np

from actors.contract.text.decoding.encoded_words import parts_of
from actors.contract.text.decoding.parts_with_form import stretches_of
from actors.contract.text.rewriting import COMMON

_WORD = re.compile(r"\S+")
_SMALL = string.ascii_lowercase
_IS_VISIBLE = bytes(not bytes((code,)).isspace() for code in range(256))
_TO_LETTERS = bytes(ord(chr(code).lower()) if chr(code) in string.ascii_letters else ord(" ") for code in range(256))
_COMMON = frozenset(word.encode() for word in COMMON)
_VISIBLE = "".join(map(chr, range(33, 127)))
_ROT47 = str.maketrans(_VISIBLE, _VISIBLE[47:] + _VISIBLE[:47])
_IS_ROT47 = bytes(
    ord("r") if chr(code) in _SMALL.translate(_ROT47) else ord(" ") if chr(code).isspace() else ord(".")
    for code in range(256)
)
_ROT47_WORDS = tuple(b" " + b"r" * length + b" " for length in range(3, 8))
"""Substrings of a text that contains a common word of three or more letters in rot47."""

_OWN = 0.15
"""A stretch with more than this share of plain common words counts as plain, whatever else is in it."""


class _Evidence(NamedTuple):
    """A number of different enciphered words, within a number of words, with a number of letters in total."""

    hits: int
    within: int
    letters: int


_EVIDENCE = (_Evidence(2, 4, 7), _Evidence(3, 10, 8))
"""Each of these proves a cipher if one word has three letters or more: shorter ones occur in many texts by chance."""

_LONGER = 3
_MOST_SPANS = 512
"""Most places of a cipher that are handled separately; after the last of them the rest of the text is undone whole."""

Undo = Callable[[str], Iterator[str]]
Known = Mapping[bytes, tuple[int, ...]]


@cache
def _ciphers() -> tuple[tuple[Undo, ...], Known, Known]:
    """Return how each cipher is undone, and by which enciphered common words it is recognised.

    The words are separated by anything but letters, or, for rot47, by white space, since rot47 turns letters into
    symbols.
    """
    common = [word for word in COMMON if len(word) > 1]
    turned = [_SMALL[by:] + _SMALL[:by] for by in range(1, 26)] + [_SMALL[::-1]]
    undo: list[Undo] = []
    words: dict[bytes, tuple[int, ...]] = {}
    tokens: dict[bytes, tuple[int, ...]] = {}
    for letters in turned:
        _add(words, (word.translate(str.maketrans(_SMALL, letters)) for word in common), len(undo))
        undo.append(_translating(str.maketrans(letters + letters.upper(), _SMALL + _SMALL.upper())))
    for how, undone in ((_backwards, _read_backwards), (_rot13_backwards, _read_rot13_backwards)):
        _add(words, map(how, common), len(undo))
        undo.append(undone)
    _add(tokens, (word.translate(_ROT47) for word in common), len(undo))
    undo.append(_translating(_ROT47))
    return tuple(undo), words, tokens


def undo_ciphers(text: str) -> Iterator[str]:
    """Yield the parts of a text that are in a cipher, deciphered, one text for each cipher; a short text as a whole."""
    undo, words, tokens = _ciphers()
    data = text.encode("ascii", "replace")
    signs = b" %b " % data.translate(_IS_ROT47)
    for said, known in ((data.translate(_TO_LETTERS), words), (data, tokens)):
        if known is tokens and not any(map(signs.__contains__, _ROT47_WORDS)):
            continue
        seen = _seen(said.split(), known)
        if not seen:
            continue
        places = parts_of(np.frombuffer(said.translate(_IS_VISIBLE), dtype=np.bool_))
        for cipher, spans in sorted(seen.items()):
            yield from undo[cipher](stretches_of(text, ((places[a][0], places[b][1]) for a, b in spans)))


def _seen(words: Sequence[bytes], known: Known) -> Mapping[int, list[tuple[int, int]]]:
    """Return the ciphers found in the words; for each, the first and last word of every place where it is found."""
    telling = _telling(filter(known.__contains__, set(words)), known)
    if not telling:
        return {}
    hits: dict[int, list[int]] = {}
    for place, word in [(place, word) for place, word in enumerate(words) if word in telling]:
        for cipher in telling[word]:
            hits.setdefault(cipher, []).append(place)
    found = {cipher: list(islice(_proven_groups(words, places), _MOST_SPANS)) for cipher, places in hits.items()}
    for cipher, spans in found.items():
        if len(spans) == _MOST_SPANS:
            spans.append((spans[-1][0], hits[cipher][-1]))
    return {cipher: spans for cipher, spans in found.items() if spans}


def _telling(some: Iterable[bytes], known: Known) -> dict[bytes, list[int]]:
    """Return the enciphered words, each with its ciphers, for those ciphers that have enough of them in the text."""
    by_cipher: dict[int, list[bytes]] = {}
    for word in some:
        for cipher in known[word]:
            by_cipher.setdefault(cipher, []).append(word)
    telling: dict[bytes, list[int]] = {}
    for cipher, words in by_cipher.items():
        lengths = sorted(map(len, words), reverse=True)
        if lengths[0] >= _LONGER and any(sum(lengths[:hits]) >= least for hits, _, least in _EVIDENCE):
            for word in words:
                telling.setdefault(word, []).append(cipher)
    return telling


def _proven_groups(words: Sequence[bytes], places: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and last word of each group, at these positions, that proves a cipher; groups do not overlap."""
    upto = -1
    for at, first in enumerate(places):
        if first <= upto:
            continue
        for hits, within, letters in _EVIDENCE:
            if at + hits > len(places) or places[at + hits - 1] - first >= within:
                continue
            last = places[at + hits - 1]
            lengths = [len(word) for word in {words[place] for place in places[at : at + hits]}]
            if len(lengths) < hits or sum(lengths) < letters or max(lengths) < _LONGER:
                continue
            if sum(map(_COMMON.__contains__, words[first : last + 1])) <= _OWN * (last + 1 - first):
                upto = last
                yield first, last
                break


def _add(known: dict[bytes, tuple[int, ...]], hidden: Iterable[str], cipher: int) -> None:
    for word in map(str.encode, hidden):
        known[word] = (*known.get(word, ()), cipher)


def _translating(table: Mapping[int, int]) -> Undo:
    def undo(text: str) -> Iterator[str]:
        yield text.translate(table)

    return undo


def _backwards(word: str) -> str:
    return word[::-1]


def _word_backwards(match: re.Match[str]) -> str:
    return match[0][::-1]


def _rot13_backwards(word: str) -> str:
    return codecs.encode(word[::-1], "rot13")


def _read_backwards(text: str) -> Iterator[str]:
    yield text[::-1]
    # The words of an instruction may be separated by any white space, and a line end may precede it.
    yield _WORD.sub(_word_backwards, text)


def _read_rot13_backwards(text: str) -> Iterator[str]:
    yield _rot13_backwards(text)
