"""The gateway's process: from its arguments to its end, and what it does and shows for operators."""
