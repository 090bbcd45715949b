"""Undoing the disguises of a text, and those of what comes out, to a bounded depth.

What comes out of a form goes through all forms again: hex in base64, an order in rot13 as the numbers of its letters.
The work is bounded: so many texts, and so many characters of them, in all; what that leaves out is counted. Nearly
every text has nothing to undo, and is told so by the first look of each form.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import msgspec

from actors.contract.text.decoding.candidate_forms import forms_in
from actors.contract.text.decoding.ciphers import undo_ciphers
from actors.contract.text.decoding.documents import join_document_values
from actors.contract.text.decoding.escapes import undo_escapes
from actors.contract.text.decoding.exfiltration_links import exfiltration_sentences
from actors.contract.text.decoding.invisible_text import decode_invisible
from actors.contract.text.decoding.numerals import decode_numerals
from actors.contract.text.decoding.payloads import decode_payloads
from actors.contract.text.decoding.plausibility import is_text, is_worded
from actors.contract.text.decoding.split_words import rejoin_split_words
from actors.contract.text.decoding.undecoded import Undecoded
from actors.contract.text.excerpt import excerpt_of
from actors.contract.text.judge.instruction_words import PLAIN_INSTRUCTION_WORDS
from actors.contract.text.views import EXTRACTED

DEPTH, DEPTH_OF_REWRITTEN = 6, 3
"""Disguises within each other that are undone: within encodings, and within any at all."""

MOST_TEXTS, MOST_CHARACTERS = 32, 393_216
"""Texts that one text is undone to at most, and their characters in all."""

APART = 3
"""Texts of one form that are read each by itself; what is more is laid together, so that many hide none."""

_BETWEEN = "\n~\n"
"""What stands between texts that are laid together: no encoded run goes on behind it."""

MOST_VIEWS, MOST_READ = 8, 4_096
"""Decoded texts that judges of words read of one text at most, and characters of each."""

MOST_WORK = 32_768
"""Characters that are undone again, of what comes out, besides as many as the text has."""

Form = Callable[[str], Iterator[str | Undecoded]]

_FORMS: tuple[tuple[str, Form], ...] = (
    ("unseen", decode_invisible),
    ("escapes", undo_escapes),
    ("numerals", decode_numerals),
    ("payloads", decode_payloads),
    *EXTRACTED,
    ("pieces", join_document_values),
    ("carrier", exfiltration_sentences),
    ("split", rejoin_split_words),
    ("cipher", undo_ciphers),
)


_NESTED = frozenset({"escapes", "payloads"})
"""Forms that are often applied twice."""


_REWRITTEN = frozenset({"pieces", "split", "escapes"})
"""Forms that ordinary texts have, too: what they give is worth reading where it says what the text did not."""

_ENCODINGS = frozenset({"unseen", "escapes", "numerals", "payloads", "binary", "morse"})
"""Forms that only who wants to hides a text in, however deep: the others find something in many a text that is none."""


class Decoded(msgspec.Struct, frozen=True):
    """What a text says with a disguise undone; ``path`` names the forms, the outermost first."""

    path: tuple[str, ...]
    text: str

    @property
    def worded(self) -> bool:
        """Whether it is made of letters for the most part, and so worth reading for its words."""
        return is_worded(self.text)


class DecodedTexts(NamedTuple):
    """What a text says with its disguises undone, and how many disguised characters were left as they are."""

    found: tuple[Decoded, ...]
    unread: int


def decoded_texts(text: str) -> tuple[Decoded, ...]:
    """Return what a text says once its disguises are undone, outer ones first; empty for nearly every text."""
    return decode_nested(text).found


@lru_cache(maxsize=64)
def decode_nested(text: str) -> DecodedTexts:
    """Undo the disguises of a text.

    Several senses ask for the same texts one after the other: the latest answers are kept.
    """
    found: list[Decoded] = []
    known = {text}
    room, work, left = MOST_CHARACTERS, 2 * len(text) + MOST_WORK, 0
    level = [Decoded((), text)]
    for depth in range(DEPTH + 1):
        below: list[Decoded] = []
        # The short ones first: a long one leaves the others something.
        for parent in sorted(level, key=lambda each: len(each.text)):
            if len(parent.text) > work:
                left += len(parent.text)
                continue
            work -= len(parent.text)
            for name, said, missed in _undone(parent, known):
                left += missed
                for laid in _laid_together(said):
                    # A disguise below the deepest that are undone is told by what it would give.
                    if depth == DEPTH or len(laid) > room or len(found) + len(below) >= MOST_TEXTS:
                        left += len(laid)
                    else:
                        room -= len(laid)
                        below.append(Decoded((*parent.path, name), laid))
        found += below
        level = below
    return DecodedTexts(tuple(found), left)


def _undone(parent: Decoded, known: set[str]) -> Iterator[tuple[str, list[str], int]]:
    """Yield for each form what it gives that is not known, and how many characters it left."""
    text, last = parent.text, parent.path[-1:]
    likely = forms_in(text)
    if len(parent.path) >= DEPTH_OF_REWRITTEN and not _ENCODINGS.issuperset(parent.path):
        likely = frozenset()
    for name, form in _FORMS:
        # What is put right already has no more of its own kind.
        if name in likely and (last != (name,) or name in _NESTED):
            said, left = [], 0
            for each in form(text):
                if isinstance(each, Undecoded):
                    left += each.characters
                elif each not in known and is_text(each):
                    known.add(each)
                    said.append(each)
            yield name, said, left


def _laid_together(said: Sequence[str]) -> Iterator[str]:
    """Yield what a form gives: the first texts as they are, of the others those with words as one, and the rest."""
    if len(said) <= APART + 1:
        yield from said
        return
    yield from said[:APART]
    others = {True: list[str](), False: list[str]()}
    for each in said[APART:]:
        others[is_worded(each)].append(each)
    yield from (_BETWEEN.join(each) for each in others.values() if each)


class JudgedTexts(NamedTuple):
    """What judges of words read of a text besides itself, and how many disguised characters they do not."""

    texts: tuple[str, ...]
    unread: int


@lru_cache(maxsize=64)
def texts_for_judges(text: str) -> JudgedTexts:
    """Return what judges of words read of a text besides itself: what it says with its disguises undone.

    What only rewrites the text counts where it has a telling word that the text has not.
    """
    said: list[str] = []
    undone = decode_nested(text)
    left = undone.unread
    plain = text.lower()
    for decoded in undone.found:
        if not decoded.worded:
            continue
        lowered = decoded.text.lower()
        if not _REWRITTEN.issuperset(decoded.path) or any(
            word in lowered and word not in plain for word in PLAIN_INSTRUCTION_WORDS
        ):
            shown, unread = excerpt_of(decoded.text, MOST_READ)
            said.append(shown)
            left += unread
    return JudgedTexts(tuple(said[:MOST_VIEWS]), left + sum(map(len, said[MOST_VIEWS:])))
