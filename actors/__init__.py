"""The minds: a package an actor, the runtime that runs them, and what their deciders share (contract)."""

SHARED = frozenset({"runtime", "contract"})
"""Packages here that are no actors."""
