"""What the checks of readiness say, which of it leaves a gateway ready, and what of it is nobody's business. Pure."""

import re

OK = "ok"
NOT_NEEDED = "n/a"
"""Said of what this deployment does without."""


def passes(said: str) -> bool:
    """Whether what a check said leaves a gateway ready."""
    return said in (OK, NOT_NEEDED)


def without_places(said: str) -> str:
    """Return what is said of a fault without the addresses and folders in it: who asks a gateway need not know them.

    Of a file its name stays, so that an operator knows which is meant. What stands in quotes is the caller's own.
    """
    return _FILE.sub(r"\1", _HOST.sub("", _ADDRESS.sub("", said)))


_END = r"(?=[;:,.)]*(?:\s|$))"
_ADDRESS = re.compile(rf"(?:(?: at)? |^)[a-z][a-z0-9+.-]*://\S+?{_END}")
_HOST = re.compile(
    rf"(?:(?: at)? |^)(?!127\.0\.0\.1(?![:\d]))"
    rf"(?:(?:\d+\.){{3}}\d+(?::\d+)?|\[[0-9a-f:]+\](?::\d+)?|[A-Za-z][\w.-]*:\d{{2,5}}){_END}"
)
_SERVED = "v1|api|orchestrator|schema|dashboard|docs|readyz|healthz|metrics"
_FILE = re.compile(
    rf"(?<![\w'\"./~])(?:/(?!(?:{_SERVED})\b)(?:[\w.+@~-]+/)*|(?:~|\.{{1,2}}|\.\w[\w.-]*)/(?:[\w.+@~-]+/)*)"
    r"([\w.+@~-]*[\w~-])"
)
