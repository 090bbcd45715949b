"""The health of a set: the checks of ``neuraxis doctor`` and of the gateway's readiness."""
