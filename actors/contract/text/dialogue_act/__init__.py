"""The kind of a turn in a dialogue (a question, a courtesy, a task, ...), from trained weights."""
