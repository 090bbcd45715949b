"""What every pull consumer's reading has in common: the request, its heartbeats, and what a delivery says of itself."""

import json

HEARTBEAT = 1.0
"""Seconds between idle heartbeats."""

SILENCE = 3.0
"""Seconds without message or heartbeat after which a consumer counts as lost."""

_EXPIRES = 10.0
_SECOND = 1_000_000_000


def pull_request(batch: int) -> bytes:
    """Return the body of a request for ``batch`` messages."""
    heartbeat, expires = int(HEARTBEAT * _SECOND), int(_EXPIRES * _SECOND)
    return json.dumps({"batch": batch, "expires": expires, "idle_heartbeat": heartbeat}).encode()


def delivery(reply: str) -> tuple[int, int, int, int] | None:
    """Read a message's acknowledgement subject; None for a status.

    Returns:
        How many times it was delivered, its stream sequence, its consumer sequence, and the server's timestamp (Unix
        nanoseconds).
    """
    if not reply.startswith("$JS.ACK."):
        return None
    tokens = reply.split(".")
    if len(tokens) > 9:  # the form with domain and account hash
        tokens = tokens[2:]
    return int(tokens[4]), int(tokens[5]), int(tokens[6]), int(tokens[7])
