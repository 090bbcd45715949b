"""The layout of tables, texts and drawings on a terminal, and the removal of control characters."""
