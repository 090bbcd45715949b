"""Recorded settings: what this release knows of them, and what it does not take."""
