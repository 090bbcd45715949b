"""Facts that a person states about themselves or takes back, read from their text by rules. English only."""
