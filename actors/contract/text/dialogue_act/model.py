"""The kind of a turn in a dialogue: the probabilities of five kinds, from trained weights.

Weights are integers, so sums are exact in any order. The rest is divisions, square roots and products, which give the
same bits on every machine. If the weights know few of a text's words and features (for example in a language missing
from training), the result stays close to the prior probabilities. In these the most likely kind is a turn that can be
answered as it stands.
"""

import hashlib
from typing import Literal, get_args

import msgspec
import numpy as np
import numpy.typing as npt

from actors.contract.text.dialogue_act.features import TurnFeatures, features_of, is_among, turn_of, word_keys
from actors.contract.text.hashing import Keys
from actors.contract.text.judge.weight_files import are_sorted_keys, arrays_in, unfit_model, weights_file

TurnKind = Literal["answerable", "underspecified", "social", "recall", "task"]
"""The kind of a turn, in this order:

it can be answered as it stands; it lacks something that only the user can supply; a courtesy; it asks for what was said
before; it asks for something to be done.
"""

KINDS: tuple[TurnKind, ...] = get_args(TurnKind)
"""All kinds, in the order of the weights."""

MODEL_KIND = "turn"
"""The name of these weights: the first part of the model's name and of its file's name."""

DECIMALS = 6
"""Decimals of the probabilities."""

WEIGHT_UNIT = 16.0
"""Feature weights are integer multiples of one over this."""

ENOUGH_KNOWN, ENOUGH_SEEN = 0.5, 0.6
"""The weights are trusted fully if at least these shares of a text's features have a weight, and of its words were seen
in training."""

_SQUARINGS = 14
"""Times that a number is squared to compute an exponential: 1 + x / 2^14 to the power of 2^14."""


class TurnModel(msgspec.Struct, frozen=True, eq=False):
    """The weights, and which features and words they know.

    ``weights[i]`` belongs to the feature ``keys[i]`` (ascending), one number for each kind. ``priors`` are added for
    any text. ``common`` are the words that are not replaced by their shape, ``words`` all words of training; both are
    ascending keys. ``sharpness`` multiplies the sum of the weights.
    """

    name: str
    keys: Keys
    weights: npt.NDArray[np.int16]
    priors: tuple[float, ...]
    common: Keys
    words: Keys
    sharpness: float


def probabilities(model: TurnModel, text: str) -> dict[TurnKind, float]:
    """Return the probability of each kind, to 6 decimals; they add up to 1 but for rounding."""
    turn = turn_of(text)
    found, certainty = evidence_of(model, turn)
    sharpness = model.sharpness * certainty
    scores = [prior + sharpness * each for prior, each in zip(model.priors, found, strict=True)]
    best = max(scores)
    shares = [_exponential(score - best) for score in scores]
    total = sum(shares)
    return {kind: round(share / total, DECIMALS) for kind, share in zip(KINDS, shares, strict=True)}


def evidence_of(model: TurnModel, turn: TurnFeatures) -> tuple[tuple[float, ...], float]:
    """Return the evidence of a turn's features for each kind, and how far it can be trusted, from 0 to 1."""
    features = features_of(turn, model.common)
    nearest = np.minimum(np.searchsorted(model.keys, features), len(model.keys) - 1)
    known = nearest[model.keys[nearest] == features]
    sums = model.weights[known].sum(axis=0, dtype=np.int64)
    scale = WEIGHT_UNIT * float(np.sqrt(float(max(len(features), 1))))
    seen = int(is_among(word_keys(turn.words), model.words).sum())
    certainty = certainty_of(len(known), len(features), seen, len(turn.words))
    return tuple(float(each) / scale for each in sums.tolist()), certainty


def certainty_of(known: int, features: int, seen: int, words: int) -> float:
    """Return how far the weights can be trusted, given how many features of a turn have a weight, and how
    many of its words were seen in training.
    """
    if not features or not words:
        return 0.0
    return min(1.0, known / features / ENOUGH_KNOWN) * min(1.0, seen / words / ENOUGH_SEEN)


def load_turn_model(data: bytes) -> TurnModel:
    """Read a weights file; the model is named ``turn`` and the first eight digits of the file's hash.

    Raises:
        InvalidModel: it is not a weights file, or does not fit this release.
    """
    found = arrays_in(data, MODEL_KIND, ("keys", "weights", "common", "words"), "head")
    keys, common, words = found["keys"], found["common"], found["words"]
    head = found["head"].tolist()
    fits = all(map(are_sorted_keys, (keys, common, words))) and len(head) == len(KINDS) + 1
    if not fits or not len(keys) or found["weights"].shape != (len(keys), len(KINDS)):
        raise unfit_model(MODEL_KIND)
    weights = found["weights"].astype(np.int16)
    name = f"{MODEL_KIND}-{hashlib.sha256(data).hexdigest()[:8]}"
    return TurnModel(name, keys, weights, tuple(head[:-1]), common, words, head[-1])


def dump_turn_model(model: TurnModel) -> bytes:
    """Return a model as a weights file; equal models give equal bytes."""
    return weights_file(
        keys=model.keys,
        weights=model.weights.astype(np.int8),
        common=model.common,
        words=model.words,
        head=np.array([*model.priors, model.sharpness]),
    )


def _exponential(value: float) -> float:
    """Return e to the power of ``value`` (0 or less), by products alone: the same bits on every machine."""
    share = 1.0 + max(value, -30.0) / 2.0**_SQUARINGS
    for _ in range(_SQUARINGS):
        share *= share
    return share
