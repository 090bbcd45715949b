"""The learned scorer: how likely a text is an attack on the model that reads it.

It is a linear model over hashed n-grams of words, of word classes and of letters, for the worst passage of the text and
of its decoded views (``actors.contract.text``). ``scorer.npz`` holds the weights; ``neuraxis train detection`` writes
it. Equal texts give equal scores in every process and on every machine.
"""

from actors.intuition.scorer.model import MODEL_VERSION, THRESHOLD, score, scorer_of

__all__ = ["MODEL_VERSION", "THRESHOLD", "score", "scorer_of"]
