"""The actors, effectors, the gateway and the ledger, a package each; ``runtime``, which runs actors and effectors; and
``contract``, what deciders share."""

SHARED = frozenset({"runtime", "contract"})
"""The packages that all others here may import; they have no section of settings."""
