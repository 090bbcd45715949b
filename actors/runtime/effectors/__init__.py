"""The shell of effectors: it performs requests and stores each answer exactly once."""
