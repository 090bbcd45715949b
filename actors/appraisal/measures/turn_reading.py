"""What kind of turn an input is: five probabilities, by trained weights (``actors.contract.text.dialogue_act.model``).

The kinds: it can be answered as it stands (``answerable``); something is missing that only the person knows
(``underspecified``); a courtesy (``social``); it asks for what was said before (``recall``); it orders a ``task``.

For one or two words, a list of courtesies decides instead. The trained model has little to read in so short a text, and
takes nearly every one for a courtesy, since the short texts of its training were greetings and thanks. So "recursion"
or "bitcoin price" would only be acknowledged. A courtesy contains a word that courtesies of some language are made of.
A text of one or two words without such a word names a topic, or, if it only points ("change that"), is underspecified.
This holds for words in Latin letters, separated by spaces; for other scripts a list would not do.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files

import msgspec

from actors.contract.text.dialogue_act.model import TurnModel, probabilities
from actors.contract.text.judge.weights import turn_weights_of
from schemas.vocabulary.appraisal import TurnReading

MOST_WORDS = 2
"""Texts of at most this many words are decided by the list."""

_MOST_CHARACTERS = 80
"""Most characters of a text that is decided by the list."""

_WORD = re.compile(r"[^\W_]+(?:['\u2019-][^\W_]+)*")
_REPEATED_LETTER = re.compile(r"(\w)\1{2,}")
"""A letter three times or more in a row."""


class _Words(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    words: frozenset[str]


COURTESIES = msgspec.json.decode(files(__package__).joinpath("courtesies.json").read_bytes(), type=_Words).words
"""Words of which courtesies are made in some thirty languages, case-folded."""

_POINTING_WORDS = frozenset(
    ("he", "her", "him", "it", "it's", "one", "ones", "she", "that", "that's", "them", "these", "they", "this", "those")
)


@cache
def turn_model() -> TurnModel:
    """Return the turn model: the one in the package, or the configured one (``actors.contract.text.judge.weights``)."""
    return turn_weights_of("actors.appraisal")


def turn_reading_of(text: str, model: TurnModel | None = None) -> TurnReading:
    """Return the probabilities of a text; ``model`` replaces this release's own."""
    return as_courtesy_or_topic(text, TurnReading(**probabilities(model or turn_model(), text)))


def as_courtesy_or_topic(text: str, turn: TurnReading) -> TurnReading:
    """Return the reading of a text. If one or two words are no courtesy, ``social`` (that it is one) becomes 0.

    Its probability is added to ``underspecified`` if the words only point at something, else to ``answerable``.
    """
    words = _words_of(text) if turn.social else ()
    if not 1 <= len(words) <= MOST_WORDS or not all(map(_is_latin, words)) or not COURTESIES.isdisjoint(_forms(words)):
        return turn
    if _POINTING_WORDS.isdisjoint(words):
        return msgspec.structs.replace(turn, social=0.0, answerable=round(turn.answerable + turn.social, 6))
    return msgspec.structs.replace(turn, social=0.0, underspecified=round(turn.underspecified + turn.social, 6))


def _words_of(text: str) -> tuple[str, ...]:
    if len(text) > _MOST_CHARACTERS:
        return ()
    return tuple(word.replace("\u2019", "'") for word in _WORD.findall(text.casefold()))


def _forms(words: Iterable[str]) -> Iterator[str]:
    """Yield words as they are, and with lengthened letters shortened ("heyyy", "coool")."""
    for word in words:
        yield from (word, _REPEATED_LETTER.sub(r"\1", word), _REPEATED_LETTER.sub(r"\1\1", word))


def _is_latin(word: str) -> bool:
    return any(map(str.isalpha, word)) and all(
        unicodedata.name(char, "").startswith("LATIN") for char in word if char.isalpha()
    )
