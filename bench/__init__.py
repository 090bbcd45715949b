"""Benchmarks: each measures a part of this product and a peer (another library), and prints the ratio of the two."""
