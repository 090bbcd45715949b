"""Verification: whether recorded decisions, made again, and recorded effects are as they should be."""
