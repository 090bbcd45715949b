"""How signatures are spelled once squeezed, and which of them end in one another.

An automaton reports, at each place of a text, every signature that ends there: as many as end in one another, such as
``a``, ``aa`` and ``aaa``. ``deep_chain`` finds those, so that a library can be held to a depth.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from actors.reflex.normalise import JOINED, UNCERTAIN, blur, lay_out, squeeze
from schemas.vocabulary.patterns import PatternSet, Signature

MIN_DISGUISED = 6
"""Letters that a signature must have for being looked for in rot13 and spaced: shorter ones turn up by chance."""


@dataclass(frozen=True, slots=True)
class Spelling:
    """One way a signature reads once squeezed, with what must lie between its letters.

    ``rank`` is the signature's place in library order. ``long``: it has letters enough to be looked for in rot13 and
    spaced.
    """

    rank: int
    letters: bytes
    gaps: bytes
    opens_word: bool
    closes_word: bool
    long: bool


def spellings_of(signatures: Sequence[tuple[PatternSet, Signature]]) -> Iterator[Spelling]:
    """Yield the squeezed spellings of every signature."""
    seen: set[tuple[int, str, bytes]] = set()
    for spelling in _squeezed([signature.text for _, signature in signatures]):
        if spelling not in seen:
            seen.add(spelling)
            yield _spelling(*spelling, signatures[spelling[0]][1].whole_words)


def search_texts(texts: Sequence[str]) -> set[tuple[bytes, int]]:
    """Return what the automaton searches of signatures, with the place of each."""
    return {(blur(letters.encode()), place) for place, letters, _ in _squeezed(texts)}


def deep_chain(letters: Iterable[tuple[bytes, int]], limit: int) -> list[int]:
    """Return the places of ``limit + 1`` of the letters that end in one another, the shortest first; none if none do.

    What counts is what the automaton sees: two signatures that differ in white space, or in digits for letters, end in
    each other too.
    """
    chain: list[tuple[bytes, int]] = []
    # Read backwards and in order, whatever letters end in comes before them.
    for backwards, place in sorted((each[::-1], place) for each, place in letters):
        while chain and not backwards.startswith(chain[-1][0]):
            chain.pop()
        chain.append((backwards, place))
        if len(chain) > limit:
            return [place for _, place in chain]
    return []


def is_word(char: str) -> bool:
    """Return whether a character goes on a word that it touches."""
    return char == "_" or char.isalnum()


def _squeezed(texts: Sequence[str]) -> Iterator[tuple[int, str, bytes]]:
    """Yield the letters and gaps of every form of every text, with the place of the text."""
    forms = [(place, form) for place, text in enumerate(texts) for form in _forms(text)]
    # All in one, since laying out costs more by the text than by the letter.
    whole = "\n".join(form for _, form in forms)
    letters, layout = squeeze(whole).decode(), lay_out(whole)
    # An invisible character in a signature says nothing.
    gaps = layout.gaps.replace(bytes([UNCERTAIN]), bytes([JOINED]))
    closes = np.searchsorted(layout.origins, np.cumsum([len(form) + 1 for _, form in forms])).tolist()
    for (place, _), start, end in zip(forms, [0, *closes], closes, strict=False):
        yield place, letters[start:end], gaps[start + 1 : end]


def _forms(text: str) -> tuple[str, ...]:
    """Return the ways to write a signature: small letters and capitals may pass for different ASCII letters."""
    return (text,) if text.isascii() else (text, text.lower(), text.upper(), text.title())


def _spelling(rank: int, letters: str, gaps: bytes, whole_words: bool) -> Spelling:
    return Spelling(
        rank,
        letters.encode(),
        gaps,
        opens_word=whole_words and is_word(letters[0]),
        closes_word=whole_words and is_word(letters[-1]),
        long=len(letters) >= MIN_DISGUISED,
    )
