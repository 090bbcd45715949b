"""One partition of an actor in a worker: recovery, decisions, fenced appends, snapshots, timers.

An append is *fenced*: the broker stores it only if the partition's last event is the one that this worker knows.
"""
