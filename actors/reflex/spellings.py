"""The spellings of signatures in squeezed form, and which of them end in one another.

Squeezed: letters are folded, white space and invisible characters are left out (``normalise``).

At each position of a text, an automaton reports every signature that ends there: all that end in one another, such as
``a``, ``aa`` and ``aaa``. ``deep_chain`` finds such chains, so that the depth of a library can be limited.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import msgspec
import numpy as np

from actors.reflex import normalise
from actors.reflex.fold_table import table_key
from actors.reflex.normalise import JOINED, SPACED, UNCERTAIN, bare_table, blur, lay_out, squeeze
from schemas.disk_cache import cached
from schemas.vocabulary.patterns import PatternSet, Signature

MIN_REWRITTEN = 6
"""Fewest letters of a signature that is searched for in rot13 and spaced: shorter ones would match by chance."""


@dataclass(frozen=True, slots=True)
class Spelling:
    """One squeezed spelling of a signature (a phrase of attacks), with what must be between its letters (``gaps``).

    ``rank`` is the signature's index in library order. ``is_rewritten``: it has enough letters to be searched for in
    rot13 and spaced. ``opens_word`` and ``closes_word``: its first or last letter must not continue into a longer word.
    ``bare``: its symbols (and punctuation) are left out, so that it is searched for in the letters of a text alone;
    where the signature has a symbol within a word, the gap is ``UNCERTAIN``: white space fits, and so does nothing.
    """

    rank: int
    letters: bytes
    gaps: bytes
    opens_word: bool
    closes_word: bool
    is_rewritten: bool
    bare: bool


def spellings_of(signatures: Sequence[tuple[PatternSet, Signature]]) -> Iterator[Spelling]:
    """Yield the squeezed spellings of every signature."""
    seen: set[tuple[int, str, bytes, bool]] = set()
    for rank, letters, gaps in _squeezed([signature.text for _, signature in signatures]):
        bare, within = _without_symbols(letters, gaps)
        for spelling in ((rank, letters, gaps, False), *([(rank, bare, within, True)] if bare else [])):
            if spelling not in seen:
                seen.add(spelling)
                yield _spelling(*spelling, whole_words=signatures[rank][1].whole_words)


def cached_spellings(signatures: Sequence[tuple[PatternSet, Signature]]) -> list[Spelling]:
    """Return ``spellings_of``, from disk if an earlier process left them there: they take most of a compilation."""
    texts = msgspec.msgpack.encode([(signature.text, signature.whole_words) for _, signature in signatures])
    content = cached(
        "spellings",
        b"".join((texts, table_key(), *(Path(file).read_bytes() for file in (__file__, normalise.__file__)))),
        lambda: msgspec.msgpack.encode(list(spellings_of(signatures))),
    )
    return msgspec.msgpack.decode(content, type=list[Spelling])


def search_texts(texts: Sequence[str]) -> set[tuple[bytes, int]]:
    """Return what the automaton searches for, with the index of the signature of each.

    It is blurred (``normalise.blur``): digits and symbols stand as the letters that they look like.
    """
    return {
        (blur(each.encode()), index)
        for index, letters, gaps in _squeezed(texts)
        for each in (letters, _without_symbols(letters, gaps)[0])
        if each
    }


def deep_chain(letters: Iterable[tuple[bytes, int]], limit: int) -> list[int]:
    """Return the indexes of ``limit + 1`` texts that end in one another, the shortest first; empty if there are none.

    The form that the automaton searches counts: two signatures that differ only in white space, or in digits for
    letters, also end in each other.
    """
    chain: list[tuple[bytes, int]] = []
    # Sorted by their reversed text, a text comes after all those that it ends in.
    for backwards, index in sorted((each[::-1], index) for each, index in letters):
        while chain and not backwards.startswith(chain[-1][0]):
            chain.pop()
        chain.append((backwards, index))
        if len(chain) > limit:
            return [index for _, index in chain]
    return []


def is_word(char: str) -> bool:
    """Return whether a character continues a word that it touches."""
    return char == "_" or char.isalnum()


def _squeezed(texts: Sequence[str]) -> Iterator[tuple[int, str, bytes]]:
    """Yield the letters and gaps of every form of every text, with the index of the text."""
    forms = [(index, form) for index, text in enumerate(texts) for form in _forms(text)]
    # All in one call, since the layout costs more for each text than for each letter.
    whole = "\n".join(form for _, form in forms)
    letters, layout = squeeze(whole).decode(), lay_out(whole)
    # An invisible character in a signature has no meaning.
    gaps = layout.gaps.replace(bytes([UNCERTAIN]), bytes([JOINED]))
    closes = np.searchsorted(layout.origins, np.cumsum([len(form) + 1 for _, form in forms])).tolist()
    for (index, _), start, end in zip(forms, [0, *closes], closes, strict=False):
        yield index, letters[start:end], gaps[start + 1 : end]


def _forms(text: str) -> tuple[str, ...]:
    """Return the forms of a signature: its small letters and capitals may look like different ASCII letters."""
    return (text,) if text.isascii() else (text, text.lower(), text.upper(), text.title())


def _without_symbols(letters: str, gaps: bytes) -> tuple[str, bytes]:
    """Return the letters and gaps of a spelling without its symbols; nothing if it has none, or one at either end.

    Without a symbol at its end a signature is another phrase: ``new instructions`` is no ``new instructions:``.
    """
    if letters.isalnum():
        return "", b""
    kept = [index for index, letter in enumerate(letters) if bare_table().take(ord(letter), mode="clip")]
    if len(kept) == len(letters) or not kept or kept[0] or kept[-1] != len(letters) - 1:
        return "", b""
    between = (
        gaps[first] if last == first + 1 else SPACED if SPACED in gaps[first:last] else UNCERTAIN
        for first, last in pairwise(kept)
    )
    return "".join(map(letters.__getitem__, kept)), bytes(between)


def _spelling(rank: int, letters: str, gaps: bytes, bare: bool, *, whole_words: bool) -> Spelling:
    return Spelling(
        rank,
        letters.encode(),
        gaps,
        opens_word=whole_words and is_word(letters[0]),
        closes_word=whole_words and is_word(letters[-1]),
        is_rewritten=len(letters) >= MIN_REWRITTEN,
        bare=bare,
    )
