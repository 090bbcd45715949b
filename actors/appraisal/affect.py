"""How a text feels: valence by vaderSentiment, arousal by a small lexicon and rules of our own, a heuristic.

vaderSentiment knows English only; a text in another language comes out neutral. No free lexicon gives arousal with a
licence to ship, so that words, exclamation marks, capitals and lengthened letters have to do.
"""

import re
from copy import copy
from functools import cache
from importlib.resources import files

import msgspec
from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer, SentiText

from schemas.reading.folding import fold

VERSION = "affect-1"

READ = 2_048
"""Characters of a text that are felt: of a longer one its two halves' worth at either end."""

_DECIMALS = 6
_BEFORE, _AFTER = 3, 2
"""How many words before and after a word vaderSentiment looks at."""

_WORD = re.compile(r"[^\W\d_]+")
_SHOUTED = re.compile(r"\b[A-Z]{3,}\b")
_LENGTHENED = re.compile(r"([a-z])\1{2,}")
_RESTING = 0.2
_WORD_WEIGHT, _STRONGER, _LOW_WEIGHT = 0.45, 1.5, 0.3
_MARKS, _MOST_MARKS = 0.06, 4
_SHOUTING, _LENGTHENING = 0.3, 0.1


class Lexicon(msgspec.Struct, frozen=True):
    """Words of high and low arousal, and words that make the next one stronger."""

    high: frozenset[str]
    low: frozenset[str]
    stronger: frozenset[str]


class Affect(msgspec.Struct, frozen=True):
    """``valence`` from -1 (unpleasant) to 1 (pleasant), ``arousal`` from 0 (calm) to 1 (stirred)."""

    valence: float
    arousal: float


class _Analyzer(SentimentIntensityAnalyzer):  # type: ignore[misc]
    """vaderSentiment, whose time grows with the length of a text and not with its square; the scores are the same.

    For each word with a valence it makes a copy of all the text's words, and looks at three before it and two after.
    """

    def sentiment_valence(
        self, valence: float, sentitext: SentiText, item: str, i: int, sentiments: list[float]
    ) -> list[float]:
        if item.lower() not in self.lexicon:
            sentiments.append(valence)
            return sentiments
        first = max(0, i - _BEFORE)
        near = copy(sentitext)
        near.words_and_emoticons = sentitext.words_and_emoticons[first : i + 1 + _AFTER]
        scored: list[float] = super().sentiment_valence(valence, near, item, i - first, sentiments)
        return scored


@cache
def _lexicon() -> Lexicon:
    return msgspec.json.decode(files("actors.appraisal").joinpath("arousal.json").read_bytes(), type=Lexicon)


@cache
def _analyzer() -> _Analyzer:
    return _Analyzer()


def affect_of(text: str) -> Affect:
    """Return how a text feels; a blank one is neutral and calm."""
    felt = text if len(text) <= READ else f"{text[: READ // 2]} {text[-READ // 2 :]}"
    if not felt.strip():
        return Affect(0.0, 0.0)
    valence = float(_analyzer().polarity_scores(felt)["compound"])
    return Affect(round(min(1.0, max(-1.0, valence)), _DECIMALS), round(_arousal(felt), _DECIMALS))


def _arousal(text: str) -> float:
    """Return the arousal of a text.

    Words count by their share, against the square root of the length: one alarmed word in a long letter says less than
    in a cry, but it says something.
    """
    lexicon = _lexicon()
    folded = fold(text)
    words = _WORD.findall(folded)
    if not words:
        return 0.0
    stirred = 0.0
    for before, word in zip(["", *words], words, strict=False):
        weight = (word in lexicon.high) * _WORD_WEIGHT - (word in lexicon.low) * _LOW_WEIGHT
        stirred += weight * (_STRONGER if before in lexicon.stronger else 1.0)
    shouted = len(_SHOUTED.findall(text)) / len(words)
    level = (
        _RESTING
        + stirred / float(max(1.0, len(words) ** 0.5 / 2.0))
        + _MARKS * min(text.count("!"), _MOST_MARKS)
        + _SHOUTING * min(1.0, 2.0 * shouted)
        + _LENGTHENING * bool(_LENGTHENED.search(folded))
    )
    return min(1.0, max(0.0, level))
