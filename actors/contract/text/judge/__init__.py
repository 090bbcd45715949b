"""The trained judges: linear classifiers of texts. Features, weights, and the worst passage, which decides."""
