"""Runs pure actors against the log: reading, deciding, fenced appends, membership, timers, snapshots."""
