"""The shell of effectors: performing requests, and storing each answer exactly once."""
