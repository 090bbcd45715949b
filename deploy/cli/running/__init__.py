"""Commands that run a set, check it and describe it."""
