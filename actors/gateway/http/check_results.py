"""The results of readiness checks: which of them leave a gateway ready, and which parts are not shown. Pure."""

import re

OK = "ok"
NOT_NEEDED = "n/a"
"""The result of a check for something that this deployment does not use."""


def passes(result: str) -> bool:
    """Return whether the result of a check leaves a gateway ready."""
    return result in (OK, NOT_NEEDED)


def without_locations(result: str) -> str:
    """Return the result of a check without addresses and folders, which callers of a gateway need not know.

    The name of a file stays, so that an operator knows which one is meant. Text in quotes was given by the caller, and
    stays.
    """
    return _FILE.sub(r"\1", _HOST.sub("", _ADDRESS.sub("", result)))


# An address ends before white space, perhaps with punctuation before that. A host is an IP address, other than that of
# this machine, or a name with a port. A folder is what stands before the name of a file in an absolute path, in one of
# the home folder, or in a relative one; paths of this gateway's own endpoints stay.
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
