"""One partition of an actor in a worker: recovery, decisions, appends under a fence, snapshots, timers."""
