"""The learned scorer: how far a text is an attack on the model that reads it.

A linear judgement of hashed n-grams of words, of word classes and of letters, of the worst passage of the text and of
its decoded views (``actors.contract.text``). ``scorer.npz`` holds the weights; ``neuraxis train detection`` writes it.
Equal texts give equal scores in every process and on every machine.
"""

from actors.intuition.scorer.model import MODEL_VERSION, THRESHOLD, score, scorer_of

__all__ = ["MODEL_VERSION", "THRESHOLD", "score", "scorer_of"]
"""The version names the weights by their content; from ``THRESHOLD`` on a score means an attack."""
