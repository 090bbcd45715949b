"""Extracts the facts that a person states about themselves or takes back from a text, by rules. English only."""
