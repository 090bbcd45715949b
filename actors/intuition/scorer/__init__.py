"""The learned scorer: how likely a text is an attack on the model that reads it.

It is a linear model over hashed n-grams of words, of word classes and of letters, for the worst passage of the text and
of its decoded views (``actors.contract.text``). ``scorer.npz`` holds the weights; ``neuraxis train detection`` writes
it. Equal texts give equal scores in every process and on every machine.
"""

from collections.abc import Iterable

from actors.contract.text.judge.model import Model, margin, to_unit_interval
from actors.contract.text.judge.weights import judge_of, weights_of
from actors.contract.text.judge.worst_passage import read_text

_DECIMALS = 6
_MODEL = weights_of("scorer", "actors.intuition.scorer")

MODEL_VERSION: str = _MODEL.name
"""``scorer-`` and the beginning of the weights file's hash."""

THRESHOLD: float = 0.5
"""Scores are scaled so that the threshold set in training, for its false-alarm rate, has this value."""


def scorer_of(names: Iterable[str]) -> Model:
    """Return the scorer among the named models, if this process was given its weights; else this release's."""
    return judge_of(names, _MODEL)


def score(text: str, model: Model = _MODEL) -> float:
    """Return the score of a text in [0, 1], rounded to six decimals: 0.5 or more is an attack. Blank texts score 0.

    The text's worst passage decides. The work is bounded: of a long text the beginning, the end and the surroundings of
    words typical of instructions to a model are read.
    """
    if not text.strip():
        return 0.0
    return round(to_unit_interval(margin(model, read_text(text))), _DECIMALS)
