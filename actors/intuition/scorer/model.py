"""The scorer's weights, and its one question."""

from schemas.reading.evidence import read_text
from schemas.reading.model import LONG_TEXT, log_odds, squashed
from schemas.reading.weights import weights_of

_DECIMALS = 6
_MODEL = weights_of("scorer", "actors.intuition.scorer")

MODEL_VERSION: str = _MODEL.name
"""``scorer-`` and the beginning of the weights file's hash."""

THRESHOLD: float = 0.5
"""Scores are scaled so that the threshold that training fixed, for its false-alarm rate, is here."""


def score(text: str) -> float:
    """Return the score of a text in [0, 1], rounded to six decimals: 0.5 and more is an attack. Blank texts score 0.

    The work is bounded: of a long text the beginning, the end and the telling parts between are read.
    """
    if not text.strip():
        return 0.0
    threshold = _MODEL.long_threshold if len(text) > LONG_TEXT else _MODEL.threshold
    return round(squashed(log_odds(_MODEL, read_text(text)) - threshold), _DECIMALS)
