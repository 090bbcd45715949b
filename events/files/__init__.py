"""Writing files: completely or not at all, and readable by their owner alone."""
