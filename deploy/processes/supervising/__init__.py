"""Keeping processes alive: children that cannot outlive their parent, restarts, and stopping in order."""
