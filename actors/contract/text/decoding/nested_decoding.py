"""Undoes the disguises of a text, then those of the results, to a limited depth.

Every result goes through all forms of disguise again: for example hex inside base64, or an instruction in rot13 written
as the numbers of its letters. The work is limited by the number of texts and their total characters; what is left out
is counted. Nearly every text contains no disguise, and the fast check of each form shows that. The trained judges,
which read the results, are linear classifiers of texts; instruction words are words typical of instructions to a model.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import msgspec

from actors.contract.text.decoded_views import SHARED_DECODERS
from actors.contract.text.decoding.candidate_forms import forms_in
from actors.contract.text.decoding.ciphers import undo_ciphers
from actors.contract.text.decoding.disguised_stretches import Undecoded
from actors.contract.text.decoding.documents import join_document_values
from actors.contract.text.decoding.escapes import undo_escapes
from actors.contract.text.decoding.exfiltration_links import exfiltration_sentences
from actors.contract.text.decoding.invisible_text import decode_invisible
from actors.contract.text.decoding.numerals import decode_numerals
from actors.contract.text.decoding.payloads import decode_payloads
from actors.contract.text.decoding.plausibility import is_mostly_letters, is_text
from actors.contract.text.decoding.split_words import rejoin_split_words
from actors.contract.text.excerpt import excerpt_of
from actors.contract.text.judge.instruction_words import PLAIN_INSTRUCTION_WORDS

DEPTH, DEPTH_OF_MIXED = 6, 3
"""Most disguises inside each other that are undone: of encodings alone, and with disguises of any kind among them."""

MOST_TEXTS, MOST_CHARACTERS = 32, 393_216
"""Most texts that one text is decoded to, and most characters of them in total."""

READ_SEPARATELY = 3
"""Most results of one form that are read separately; further ones are joined, so that a large number hides none."""

_SEPARATOR = "\n~\n"
"""The separator of joined texts; no encoded run continues across it."""

MOST_VIEWS, MOST_READ = 8, 4_096
"""Most decoded texts of one text that the trained judges read, and most characters of each."""

MOST_WORK = 32_768
"""Characters of results that are decoded again, in addition to twice the length of the text."""

Form = Callable[[str], Iterator[str | Undecoded]]
"""Undoes one form of hiding: text -> what it decodes to, and what could not be decoded."""

_FORMS: tuple[tuple[str, Form], ...] = (
    ("unseen", decode_invisible),
    ("escapes", undo_escapes),
    ("numerals", decode_numerals),
    ("payloads", decode_payloads),
    *SHARED_DECODERS,
    ("pieces", join_document_values),
    ("carrier", exfiltration_sentences),
    ("split", rejoin_split_words),
    ("cipher", undo_ciphers),
)
"""The name of each form, and its function, in order; ``candidate_forms.forms_in`` says what each name means."""

_NESTED = frozenset({"escapes", "payloads"})
"""Forms that are often applied twice."""


_REWRITTEN = frozenset({"pieces", "split", "escapes"})
"""Forms that ordinary texts contain, too: their results are read only where they say something new."""

_ENCODINGS = frozenset({"unseen", "escapes", "numerals", "payloads", "binary", "hex", "morse"})
"""Forms that encode a text. Ordinary texts are not encoded several times, so these may be nested to ``DEPTH``."""


class Decoded(msgspec.Struct, frozen=True):
    """A text with a disguise undone; ``path`` names the forms, the outermost first."""

    path: tuple[str, ...]
    text: str

    @property
    def has_words(self) -> bool:
        """Whether it consists mostly of letters, so that its words are worth reading."""
        return is_mostly_letters(self.text)


class DecodedTexts(NamedTuple):
    """The texts that were decoded from a text, and the number of disguised characters that were not decoded."""

    found: tuple[Decoded, ...]
    unread: int


def decoded_texts(text: str) -> tuple[Decoded, ...]:
    """Return a text with its disguises undone, outer ones first; empty for nearly every text."""
    return decode_nested(text).found


@lru_cache(maxsize=64)
def decode_nested(text: str) -> DecodedTexts:
    """Undo the disguises of a text.

    Several guards ask for the same texts one after another, so the latest results are cached.
    """
    found: list[Decoded] = []
    known = {text}
    room, work, undecoded = MOST_CHARACTERS, 2 * len(text) + MOST_WORK, 0
    level = [Decoded((), text)]
    for depth in range(DEPTH + 1):
        below: list[Decoded] = []
        # Short texts first, so that a long one does not use up the limit for the others.
        for parent in sorted(level, key=lambda each: len(each.text)):
            if len(parent.text) > work:
                undecoded += len(parent.text)
                continue
            work -= len(parent.text)
            for name, results, missed in _undone(parent, known):
                undecoded += missed
                for result in _joined(results):
                    # Beyond the deepest level a disguise is not decoded, but the length of its result is counted.
                    if depth == DEPTH or len(result) > room or len(found) + len(below) >= MOST_TEXTS:
                        undecoded += len(result)
                    else:
                        room -= len(result)
                        below.append(Decoded((*parent.path, name), result))
        found += below
        level = below
    return DecodedTexts(tuple(found), undecoded)


def _undone(parent: Decoded, known: set[str]) -> Iterator[tuple[str, list[str], int]]:
    """Yield for each form its new results, and the number of characters that it did not decode."""
    text, last = parent.text, parent.path[-1:]
    possible = forms_in(text)
    if len(parent.path) >= DEPTH_OF_MIXED and not _ENCODINGS.issuperset(parent.path):
        possible = frozenset()
    for name, form in _FORMS:
        # A form is not applied to its own result, except for those that are often applied twice.
        # Hex in the text itself is read by whoever asks for its decoded texts.
        if name in possible and (last != (name,) or name in _NESTED) and (parent.path or name != "hex"):
            results, undecoded = [], 0
            for each in form(text):
                if isinstance(each, Undecoded):
                    undecoded += each.characters
                elif each not in known and is_text(each):
                    known.add(each)
                    results.append(each)
            yield name, results, undecoded


def _joined(results: Sequence[str]) -> Iterator[str]:
    """Yield the results of a form: the first separately; of the rest, those with words as one text, then the others."""
    if len(results) <= READ_SEPARATELY + 1:
        yield from results
        return
    yield from results[:READ_SEPARATELY]
    others = {True: list[str](), False: list[str]()}
    for each in results[READ_SEPARATELY:]:
        others[is_mostly_letters(each)].append(each)
    yield from (_SEPARATOR.join(each) for each in others.values() if each)


class JudgedTexts(NamedTuple):
    """The texts that the trained judges read besides a text itself, and how many disguised characters they miss."""

    texts: tuple[str, ...]
    unread: int


@lru_cache(maxsize=64)
def texts_for_judges(text: str) -> JudgedTexts:
    """Return what the trained judges read besides a text itself: the text with its disguises undone.

    A result that only rewrites the text counts only if it contains an instruction word that the text does not.
    """
    shown: list[str] = []
    undone = decode_nested(text)
    missed = undone.unread
    plain = text.lower()
    for decoded in undone.found:
        if not decoded.has_words:
            continue
        lowered = decoded.text.lower()
        if not _REWRITTEN.issuperset(decoded.path) or any(
            word in lowered and word not in plain for word in PLAIN_INSTRUCTION_WORDS
        ):
            excerpt, unread = excerpt_of(decoded.text, MOST_READ)
            shown.append(excerpt)
            missed += unread
    return JudgedTexts(tuple(shown[:MOST_VIEWS]), missed + sum(map(len, shown[MOST_VIEWS:])))
