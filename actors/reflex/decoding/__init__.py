"""Encoded runs of a text, and what they decode to."""
