"""The learned scorer as judging sees it: a function from text to [0, 1], its model and its threshold.

The one place that imports it, so that the rest of the package stands without it.
"""

try:
    from actors.intuition.scorer import MODEL_VERSION, THRESHOLD, score  # type: ignore[import-untyped, unused-ignore]
except ModuleNotFoundError as missing:
    if missing.name != "actors.intuition.scorer":
        raise
    MODEL_VERSION, THRESHOLD = "none", 1.0

    def score(text: str) -> float:
        """Return 0: without a model nothing is known of a text."""
        return 0.0


AVAILABLE: bool = MODEL_VERSION != "none"
"""Whether there is a scorer; a package without its model judges by motifs alone."""

__all__ = ["AVAILABLE", "MODEL_VERSION", "THRESHOLD", "score"]
