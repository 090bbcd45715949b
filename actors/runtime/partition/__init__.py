"""One partition of an actor: recovering, deciding, appending under a fence, snapshots, timers."""
