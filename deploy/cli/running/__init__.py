"""Commands that run a set and look at it."""
