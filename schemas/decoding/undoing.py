"""Undoing the disguises of a text, and those of what comes out, to a bounded depth.

What comes out of a form goes through all forms again: hex in base64, an order in rot13 as the numbers of its letters.
The work is bounded: so many texts, and so many characters of them, in all. Nearly every text has
nothing to undo, and is told so by the first look of each form.
"""

from collections.abc import Callable, Iterator
from functools import lru_cache

import msgspec

from schemas.decoding.carriers import carriers
from schemas.decoding.ciphers import ciphers
from schemas.decoding.documents import documents
from schemas.decoding.escapes import escapes
from schemas.decoding.likely import forms_in
from schemas.decoding.numerals import numerals
from schemas.decoding.payloads import payloads
from schemas.decoding.plausible import is_text, is_worded
from schemas.decoding.splitting import splitting
from schemas.decoding.unseen import unseen
from schemas.reading.telling import PLAIN_TELLING
from schemas.reading.views import EXTRACTED

DEPTH = 3
"""Disguises within each other that are undone."""

MOST_TEXTS, MOST_CHARACTERS = 24, 131_072
"""Texts that one text is undone to at most, and their characters in all."""

MOST_VIEWS, MOST_READ = 8, 4_096
"""Decoded texts that judges of words read of one text at most, and characters of each."""

MOST_WORK = 32_768
"""Characters that are undone again, of what comes out."""

Form = Callable[[str], Iterator[str]]

_FORMS: tuple[tuple[str, Form], ...] = (
    ("unseen", unseen),
    ("escapes", escapes),
    ("numerals", numerals),
    ("payloads", payloads),
    *EXTRACTED,
    ("pieces", documents),
    ("carrier", carriers),
    ("split", splitting),
    ("cipher", ciphers),
)


_NESTED = frozenset({"escapes", "payloads"})
"""Forms that are often applied twice."""


_REWRITTEN = frozenset({"pieces", "split", "escapes"})
"""Forms that ordinary texts have, too: what they give is worth reading where it says what the text did not."""


class Decoded(msgspec.Struct, frozen=True):
    """What a text says with a disguise undone; ``path`` names the forms, the outermost first."""

    path: tuple[str, ...]
    text: str

    @property
    def worded(self) -> bool:
        """Whether it is made of letters for the most part, and so worth reading for its words."""
        return is_worded(self.text)


@lru_cache(maxsize=64)
def decoded_of(text: str) -> tuple[Decoded, ...]:
    """Return what a text says once its disguises are undone, outer ones first; empty for nearly every text.

    Several senses ask for the same texts one after the other: the latest answers are kept.
    """
    found: list[Decoded] = []
    known = {text}
    room, work = MOST_CHARACTERS, len(text) + MOST_WORK
    level = [Decoded((), text)]
    for _ in range(DEPTH):
        below: list[Decoded] = []
        # The short ones first: a long one leaves the others something.
        for parent in sorted(level, key=lambda each: len(each.text)):
            work -= len(parent.text)
            if work < 0:
                break
            for name, said in _undone(parent):
                if said in known or not is_text(said):
                    continue
                known.add(said)
                if len(said) > room or len(found) + len(below) >= MOST_TEXTS:
                    return (*found, *below)
                room -= len(said)
                below.append(Decoded((*parent.path, name), said))
        found += below
        level = below
    return tuple(found)


def _undone(parent: Decoded) -> Iterator[tuple[str, str]]:
    text = parent.text
    likely = forms_in(text)
    last = parent.path[-1:]
    for name, form in _FORMS:
        # What is put right already has no more of its own kind.
        if name in likely and (last != (name,) or name in _NESTED):
            for said in form(text):
                yield name, said


@lru_cache(maxsize=64)
def read_of(text: str) -> tuple[str, ...]:
    """Return what judges of words read of a text besides itself: what it says with its disguises undone.

    What only rewrites the text counts where it has a telling word that the text has not.
    """
    said: list[str] = []
    plain = text.lower()
    for decoded in decoded_of(text):
        if not decoded.worded:
            continue
        lowered = decoded.text.lower()
        if not _REWRITTEN.issuperset(decoded.path) or any(
            word in lowered and word not in plain for word in PLAIN_TELLING
        ):
            said.append(decoded.text[:MOST_READ])
    return tuple(said[:MOST_VIEWS])
