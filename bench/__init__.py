"""Benchmarks: each prints what it measured, its peer, and the ratio of the two from the same run."""
