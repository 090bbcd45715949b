"""Recorded settings: which of them this release knows, and which values it does not accept."""
