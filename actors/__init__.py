"""The minds: a package an actor, and the runtime that runs them."""
