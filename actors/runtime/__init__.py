"""The shell that runs actors: reading, deciding, fenced appending, leases, timers, snapshots."""
