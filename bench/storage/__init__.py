"""The log and the ledger (its copy in SQLite): appending, reading, questions, replay, and how the costs grow."""
