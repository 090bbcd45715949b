"""The actors, a package each; ``runtime``, which runs them; and ``contract``, what their deciders share."""

SHARED = frozenset({"runtime", "contract"})
"""The packages here that hold no actor."""
