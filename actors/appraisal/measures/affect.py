"""The affect of a text: valence by vaderSentiment, arousal by a small lexicon and rules of our own. A heuristic.

vaderSentiment knows English only; a text in another language is neutral. No lexicon of arousal has a licence that
allows shipping it. So arousal is read from some words, exclamation marks, capitals and lengthened letters.
"""

import re
from functools import cache, lru_cache
from importlib.resources import files
from itertools import compress, count, pairwise
from string import ascii_lowercase

import msgspec
from vaderSentiment.vaderSentiment import (
    BOOSTER_DICT,
    C_INCR,
    NEGATE,
    SPECIAL_CASES,
    SentimentIntensityAnalyzer,
    SentiText,
    normalize,
)

from actors.contract.text.folding import fold

VERSION = "affect-1"
"""Recorded in the ``models`` of events; a change of words that changes any number needs a new one."""

MOST_READ = 2_048
"""Characters of a text that are read; of a longer text, half of them at each end."""

_DECIMALS = 6
_BEFORE, _AFTER = 3, 2
"""How many words before and after a word vaderSentiment looks at."""

_WORD = re.compile(r"[^\W\d_]+")
_CAPITALS = re.compile(r"\b[A-Z]{3,}\b")
_LENGTHENED = tuple(3 * letter for letter in ascii_lowercase)
# The arousal of a text without any sign of it, and what each sign adds or multiplies: words of high arousal, a word
# that makes the next one stronger, words of low arousal; exclamation marks (to a limit), capitals, lengthened words.
_BASE_AROUSAL = 0.2
_HIGH_WEIGHT, _STRONGER_FACTOR, _LOW_WEIGHT = 0.45, 1.5, 0.3
_EXCLAMATION_WEIGHT, _MOST_EXCLAMATIONS = 0.06, 4
_CAPITALS_WEIGHT, _LENGTHENED_WEIGHT = 0.3, 0.1


class Lexicon(msgspec.Struct, frozen=True):
    """Words of high and low arousal, and words that make the next one stronger."""

    high: frozenset[str]
    low: frozenset[str]
    stronger: frozenset[str]


class Affect(msgspec.Struct, frozen=True):
    """``valence`` from -1 (unpleasant) to 1 (pleasant), ``arousal`` from 0 (calm) to 1 (excited)."""

    valence: float
    arousal: float


class _Analyzer(SentimentIntensityAnalyzer):  # type: ignore[misc]
    """vaderSentiment in time that grows with a text's length, not with its square; the scores are the same.

    It looks at the three words before a word with a valence, and at the two after it. These rarely change the valence.
    Only if one of them may, the package's own slow reading is used, on a copy of these words alone.
    """

    def compound(self, text: str) -> float:
        """Return the valence of a text, from -1 to 1: what the package's ``polarity_scores`` calls ``compound``."""
        plain = text.isascii() or self.emojis.keys().isdisjoint(text)
        shown = (text if plain else self._with_emoji_described(text)).strip()
        words = list(map(_bare, shown.split()))
        has_capitals = 0 < sum(map(str.isupper, words)) < len(words)
        lowered = [word.lower() for word in words]
        sentiments: list[float] = [0] * len(words)
        for index in compress(count(), map(self.lexicon.__contains__, lowered)):
            word = lowered[index]
            if word in BOOSTER_DICT or (word == "kind" and lowered[index + 1 : index + 2] == ["of"]):
                continue
            if any(map(_may_change, lowered[max(0, index - _BEFORE) : index + 1 + _AFTER])):
                sentiments[index] = self._changed_valence(words, index, has_capitals)
            else:
                is_shouted = has_capitals and words[index].isupper()
                valence = self.lexicon[word]
                sentiments[index] = valence + (C_INCR if valence > 0 else -C_INCR) if is_shouted else valence
        if "but" in lowered:
            sentiments = self._but_check(words, sentiments)
        total = float(sum(sentiments))
        emphasis = self._punctuation_emphasis(shown)
        return float(round(normalize(total + (emphasis if total > 0 else -emphasis if total < 0 else 0)), 4))

    def _negation_check(self, valence: float, words: list[str], start: int, index: int) -> float:
        # This slow check is made for three words each time.
        if not any(map(_may_negate, words[max(0, index - _BEFORE) : index])):
            return valence
        changed: float = super()._negation_check(valence, words, start, index)
        return changed

    def _changed_valence(self, words: list[str], index: int, has_capitals: bool) -> float:
        """Return the valence of the word at ``index`` by the package's own reading of the words around it."""
        first = max(0, index - _BEFORE)
        near = SentiText("")
        near.words_and_emoticons = words[first : index + 1 + _AFTER]
        near.is_cap_diff = has_capitals
        (valence,) = self.sentiment_valence(0, near, words[index], index - first, [])
        return float(valence)

    def _with_emoji_described(self, text: str) -> str:
        """Return a text with its emoji replaced by words."""
        parts: list[str] = []
        after_space = True
        for char in text:
            description = self.emojis.get(char)
            if description is not None and not after_space:
                parts.append(" ")
            parts.append(char if description is None else description)
            after_space = char == " "
        return "".join(parts)


_CHANGING = frozenset(
    (
        *(*BOOSTER_DICT, *NEGATE, "so", "this", "no", "or", "nor", "least", "enough", "kind", "sort"),
        *(word for phrase in SPECIAL_CASES for word in phrase.split() if word not in ("the", "to", "of", "for")),
    )
)
"""Words of which at least one is in every phrase that changes the valence of a word nearby."""

_NEGATING = frozenset((*NEGATE, "so", "this"))


@lru_cache(maxsize=16_384)
def _may_change(word: str) -> bool:
    return word in _CHANGING or "n't" in word


@lru_cache(maxsize=16_384)
def _bare(token: str) -> str:
    bare: str = SentiText._strip_punc_if_word(token)
    return bare


@lru_cache(maxsize=16_384)
def _may_negate(word: str) -> bool:
    lowered = word.lower()
    return lowered in _NEGATING or "n't" in lowered


@cache
def _lexicon() -> Lexicon:
    return msgspec.json.decode(files(__package__).joinpath("arousal.json").read_bytes(), type=Lexicon)


@cache
def _weights() -> dict[str, float]:
    lexicon = _lexicon()
    return {
        word: (word in lexicon.high) * _HIGH_WEIGHT - (word in lexicon.low) * _LOW_WEIGHT
        for word in lexicon.high | lexicon.low
    }


@cache
def _analyzer() -> _Analyzer:
    return _Analyzer()


def affect_of(text: str) -> Affect:
    """Return the affect of a text; a blank one is neutral and calm."""
    read = text if len(text) <= MOST_READ else f"{text[: MOST_READ // 2]} {text[-MOST_READ // 2 :]}"
    if not read.strip():
        return Affect(0.0, 0.0)
    valence = _analyzer().compound(read)
    return Affect(round(min(1.0, max(-1.0, valence)), _DECIMALS), round(_arousal(read), _DECIMALS))


def _arousal(text: str) -> float:
    """Return the arousal of a text.

    The sum over words is divided by the square root of the length: one excited word counts for less in a long text than
    in a short one, but it counts.
    """
    stronger, weights = _lexicon().stronger, _weights()
    folded = fold(text)
    words = _WORD.findall(folded)
    if not words:
        return 0.0
    sum_of_words = 0.0
    for before, word in pairwise(("", *words)):
        if word in weights:
            sum_of_words += weights[word] * (_STRONGER_FACTOR if before in stronger else 1.0)
    capitals = len(_CAPITALS.findall(text)) / len(words)
    level = (
        _BASE_AROUSAL
        + sum_of_words / float(max(1.0, len(words) ** 0.5 / 2.0))
        + _EXCLAMATION_WEIGHT * min(text.count("!"), _MOST_EXCLAMATIONS)
        + _CAPITALS_WEIGHT * min(1.0, 2.0 * capitals)
        + _LENGTHENED_WEIGHT * any(map(folded.__contains__, _LENGTHENED))
    )
    return min(1.0, max(0.0, level))
