"""Why an exchange ended as it did: its events as a tree, each told with its numbers."""
