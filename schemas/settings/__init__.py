"""Recorded settings: which of them this release knows, and which it does not accept."""
