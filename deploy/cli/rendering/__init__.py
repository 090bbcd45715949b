"""Showing decisions to people: pure functions from what was recorded to text and tables."""
