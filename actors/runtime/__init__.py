"""Runs pure actors against the log: reading, deciding, fenced appends, membership, timers, snapshots.

A *fenced* append is stored only if nobody else has appended to the same partition since it was last read.
"""
