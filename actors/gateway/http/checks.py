"""What the checks of readiness say, and which of it leaves a gateway ready."""

OK = "ok"
NOT_NEEDED = "n/a"
"""Said of what this deployment does without."""


def passes(said: str) -> bool:
    """Whether what a check said leaves a gateway ready."""
    return said in (OK, NOT_NEEDED)
