"""Checks of a ledger: its chain, its columns, its read models, and the stream that it follows."""
