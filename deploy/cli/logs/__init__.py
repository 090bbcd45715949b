"""Commands for the log itself and its copies."""
