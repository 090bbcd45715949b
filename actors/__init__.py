"""The minds: a package an actor, and what actors share: the runtime that runs them, and how they read texts."""

SHARED = frozenset({"runtime", "text"})
"""Packages here that are no actors."""
