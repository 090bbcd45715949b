"""The learned scorer: how far a text is an attack on the model that reads it.

A linear judgement of hashed n-grams of words and of word classes, of the whole text, its segments and its decoded views
(``schemas.reading``). ``scorer.npz`` holds the weights; ``python -m deploy.training`` writes it. Equal texts give equal
scores in every process and on every machine.
"""

from actors.intuition.scorer.model import MODEL_VERSION, THRESHOLD, score, scorer_of

__all__ = ["MODEL_VERSION", "THRESHOLD", "score", "scorer_of"]
"""The version names the weights by their content; from ``THRESHOLD`` on a score means an attack."""
