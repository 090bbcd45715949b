"""The output of ``neuraxis why``: an exchange's events as a tree of causes, each with its numbers."""
