"""Showing decisions to people: pure functions that make texts and tables of recorded events."""
