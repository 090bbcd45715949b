"""Why an exchange ended as it did: its events as a tree, each with its numbers."""
