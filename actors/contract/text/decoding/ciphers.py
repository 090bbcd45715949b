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

from actors.contract.text.decoding.disguised_stretches import stretches_of
from actors.contract.text.decoding.encoded_words import bounds_of_runs
from actors.contract.text.rewriting import COMMON_WORDS

_WORD = re.compile(r"\S+")
_LOWER_CASE = string.ascii_lowercase
# Translation tables for bytes: is it visible; its letter in lower case, or a blank; is it a lower-case letter in rot47.
_IS_VISIBLE = bytes(not bytes((code,)).isspace() for code in range(256))
_TO_LETTERS = bytes(ord(chr(code).lower()) if chr(code) in string.ascii_letters else ord(" ") for code in range(256))
_COMMON = frozenset(word.encode() for word in COMMON_WORDS)
_VISIBLE = "".join(map(chr, range(33, 127)))
_ROT47 = str.maketrans(_VISIBLE, _VISIBLE[47:] + _VISIBLE[:47])
_IS_ROT47 = bytes(
    ord("r") if chr(code) in _LOWER_CASE.translate(_ROT47) else ord(" ") if chr(code).isspace() else ord(".")
    for code in range(256)
)
_ROT47_WORDS = tuple(b" " + b"r" * length + b" " for length in range(3, 8))
"""Substrings of a text that contains a common word of three or more letters in rot47."""

_PLAIN_SHARE = 0.15
"""A stretch with more than this share of plain common words counts as plain, whatever else is in it."""


class _Evidence(NamedTuple):
    """A number of different enciphered words, within a number of words, with a number of letters in total."""

    hits: int
    within: int
    letters: int


_EVIDENCE = (_Evidence(2, 4, 7), _Evidence(3, 10, 8))
"""Each of these proves a cipher if one word has three letters or more: shorter ones occur in many texts by chance."""

_LONG_WORD = 3
"""Letters that at least one of the words must have."""

_MOST_SPANS = 512
"""Most spans of one cipher that are handled separately; what follows the last of them is deciphered as one span."""

Undo = Callable[[str], Iterator[str]]
"""Enciphered text -> the texts that it may stand for."""

Known = Mapping[bytes, tuple[int, ...]]
"""Enciphered common word -> the indexes of the ciphers that give it."""


@cache
def _ciphers() -> tuple[tuple[Undo, ...], Known, Known]:
    """Return how each cipher is undone, and by which enciphered common words it is recognised.

    The words are separated by anything but letters, or, for rot47, by white space, since rot47 turns letters into
    symbols.
    """
    common = [word for word in COMMON_WORDS if len(word) > 1]
    alphabets = [_LOWER_CASE[shift:] + _LOWER_CASE[:shift] for shift in range(1, 26)] + [_LOWER_CASE[::-1]]
    undo: list[Undo] = []
    words: dict[bytes, tuple[int, ...]] = {}
    tokens: dict[bytes, tuple[int, ...]] = {}
    for letters in alphabets:
        _register(words, (word.translate(str.maketrans(_LOWER_CASE, letters)) for word in common), len(undo))
        undo.append(_translating(str.maketrans(letters + letters.upper(), _LOWER_CASE + _LOWER_CASE.upper())))
    for encipher, decipher in ((_backwards, _read_backwards), (_rot13_backwards, _read_rot13_backwards)):
        _register(words, map(encipher, common), len(undo))
        undo.append(decipher)
    _register(tokens, (word.translate(_ROT47) for word in common), len(undo))
    undo.append(_translating(_ROT47))
    return tuple(undo), words, tokens


def undo_ciphers(text: str) -> Iterator[str]:
    """Yield the parts of a text that are in a cipher, deciphered, one text for each cipher; a short text as a whole."""
    undo, words, tokens = _ciphers()
    data = text.encode("ascii", "replace")
    rot47_shape = b" %b " % data.translate(_IS_ROT47)
    for prepared, known in ((data.translate(_TO_LETTERS), words), (data, tokens)):
        if known is tokens and not any(map(rot47_shape.__contains__, _ROT47_WORDS)):
            continue
        found = _ciphers_in(prepared.split(), known)
        if not found:
            continue
        bounds = bounds_of_runs(np.frombuffer(prepared.translate(_IS_VISIBLE), dtype=np.bool_))
        for cipher, spans in sorted(found.items()):
            yield from undo[cipher](stretches_of(text, ((bounds[a][0], bounds[b][1]) for a, b in spans)))


def _ciphers_in(words: Sequence[bytes], known: Known) -> Mapping[int, list[tuple[int, int]]]:
    """Return the ciphers found in the words; for each, the first and last word of every span where it is found."""
    candidates = _frequent_enough(filter(known.__contains__, set(words)), known)
    if not candidates:
        return {}
    hits: dict[int, list[int]] = {}
    for index, word in [(index, word) for index, word in enumerate(words) if word in candidates]:
        for cipher in candidates[word]:
            hits.setdefault(cipher, []).append(index)
    found = {cipher: list(islice(_proven_spans(words, indexes), _MOST_SPANS)) for cipher, indexes in hits.items()}
    for cipher, spans in found.items():
        if len(spans) == _MOST_SPANS:
            spans.append((spans[-1][0], hits[cipher][-1]))
    return {cipher: spans for cipher, spans in found.items() if spans}


def _frequent_enough(enciphered: Iterable[bytes], known: Known) -> dict[bytes, list[int]]:
    """Return the enciphered words, each with its ciphers, for those ciphers that have enough of them in the text."""
    by_cipher: dict[int, list[bytes]] = {}
    for word in enciphered:
        for cipher in known[word]:
            by_cipher.setdefault(cipher, []).append(word)
    candidates: dict[bytes, list[int]] = {}
    for cipher, words in by_cipher.items():
        lengths = sorted(map(len, words), reverse=True)
        if lengths[0] >= _LONG_WORD and any(sum(lengths[:hits]) >= least for hits, _, least in _EVIDENCE):
            for word in words:
                candidates.setdefault(word, []).append(cipher)
    return candidates


def _proven_spans(words: Sequence[bytes], indexes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and last word of each span, among the words at these indexes, that proves a cipher.

    Spans do not overlap.
    """
    upto = -1
    for at, first in enumerate(indexes):
        if first <= upto:
            continue
        for hits, within, letters in _EVIDENCE:
            if at + hits > len(indexes) or indexes[at + hits - 1] - first >= within:
                continue
            last = indexes[at + hits - 1]
            lengths = [len(word) for word in {words[index] for index in indexes[at : at + hits]}]
            if len(lengths) < hits or sum(lengths) < letters or max(lengths) < _LONG_WORD:
                continue
            if sum(map(_COMMON.__contains__, words[first : last + 1])) <= _PLAIN_SHARE * (last + 1 - first):
                upto = last
                yield first, last
                break


def _register(known: dict[bytes, tuple[int, ...]], enciphered: Iterable[str], cipher: int) -> None:
    for word in map(str.encode, enciphered):
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
    # Word by word, too: the words may stand in their order, each reversed.
    yield _WORD.sub(_word_backwards, text)


def _read_rot13_backwards(text: str) -> Iterator[str]:
    yield _rot13_backwards(text)
