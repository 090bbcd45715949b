"""Copies of a log: its export as lines or a bundle, the import of a bundle, and backups of a running set."""
