"""The trained judges of texts: features, weights, and the worst passage, which decides."""
