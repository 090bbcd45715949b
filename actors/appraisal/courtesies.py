"""Whether a word or two are a courtesy or a topic. Pure.

A text so short has little but its length and its letters to be read by, and by these nearly every one is a courtesy:
what training had of such texts were greetings and thanks. So "recursion" and "bitcoin price" would be noted and left
at that. A courtesy is made of words that courtesies are made of, in whatever language; a text of a word or two that has
none of them is taken for what it names, or, where it only points ("change that"), for something that lacks what it
points at. Only where words stand apart, in Latin letters: of others no list would do.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from importlib.resources import files

import msgspec

from schemas.vocabulary.appraisal import TurnReading

MOST_WORDS = 2
"""Words of a text that are too few to be read by anything but what they are."""

_MOST_CHARACTERS = 80
_WORD = re.compile(r"[^\W_]+(?:['\u2019-][^\W_]+)*")
_DRAWN_OUT = re.compile(r"(\w)\1{2,}")


class _Words(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    words: frozenset[str]


COURTESIES = msgspec.json.decode(files(__package__).joinpath("courtesies.json").read_bytes(), type=_Words).words
"""Words of which courtesies are made in some thirty languages, case-folded."""


_POINTING = frozenset(
    ("he", "her", "him", "it", "it's", "one", "ones", "she", "that", "that's", "them", "these", "they", "this", "those")
)


def as_courtesy_or_topic(text: str, turn: TurnReading) -> TurnReading:
    """Return the reading of a text; where a word or two are no courtesy, what was read as social goes to what they are.

    That is underspecified where they point at something, and answerable where they name it.
    """
    words = _words_of(text) if turn.social else ()
    if not 1 <= len(words) <= MOST_WORDS or not all(map(_is_latin, words)) or not COURTESIES.isdisjoint(_forms(words)):
        return turn
    if _POINTING.isdisjoint(words):
        return msgspec.structs.replace(turn, social=0.0, answerable=round(turn.answerable + turn.social, 6))
    return msgspec.structs.replace(turn, social=0.0, underspecified=round(turn.underspecified + turn.social, 6))


def _words_of(text: str) -> tuple[str, ...]:
    if len(text) > _MOST_CHARACTERS:
        return ()
    return tuple(word.replace("\u2019", "'") for word in _WORD.findall(text.casefold()))


def _forms(words: Iterable[str]) -> Iterator[str]:
    """Yield words as they are, and without what is drawn out ("heyyy", "coool")."""
    for word in words:
        yield from (word, _DRAWN_OUT.sub(r"\1", word), _DRAWN_OUT.sub(r"\1\1", word))


def _is_latin(word: str) -> bool:
    return any(map(str.isalpha, word)) and all(
        unicodedata.name(sign, "").startswith("LATIN") for sign in word if sign.isalpha()
    )
