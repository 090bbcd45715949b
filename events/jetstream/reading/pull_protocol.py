"""The pull protocol, shared by all readers: requests, heartbeats, statuses, and the fields of a delivery."""

import json
from collections.abc import Mapping

HEARTBEAT = 1.0
"""Seconds between idle heartbeats."""

SILENCE = 3.0
"""Seconds without message or heartbeat after which a consumer counts as lost."""

MOST_WAITING = 64 * 1024 * 1024
"""Bytes that may wait for a client. Above that, a server calls it a slow consumer and disconnects it."""

MOST_BYTES = 2 * 1024 * 1024
"""Bytes asked for at a time. A process has several readings, each with two requests in flight, and all that they ask
for may wait at once if the process is busy: ``MOST_WAITING`` must hold it."""

_OVER = frozenset({"Batch Completed", "Message Size Exceeds MaxBytes"})
"""Descriptions of a finished request with a byte limit: all of it was sent, or the next message would not fit."""

_EXPIRES = 10.0
"""Seconds after which a server drops a pull request."""

_NS_PER_S = 1_000_000_000


def pull_request(
    batch: int, most_bytes: int = MOST_BYTES, *, heartbeat_s: float | None = None, ends_with_log: bool = False
) -> bytes:
    """Return the body of a request for ``batch`` messages, of ``most_bytes`` together.

    ``heartbeat_s`` are the seconds between idle heartbeats, 0.1 at least; None: ``HEARTBEAT``. If it
    ``ends_with_log``, the server waits for the first message only: the request is over once it has sent all that there
    is.
    """
    heartbeat, expires = int((HEARTBEAT if heartbeat_s is None else heartbeat_s) * _NS_PER_S), int(_EXPIRES * _NS_PER_S)
    request = {"batch": batch, "max_bytes": most_bytes, "expires": expires, "idle_heartbeat": heartbeat}
    if ends_with_log:
        request["no_wait"] = True
    return json.dumps(request).encode()


def undelivered_count(headers: Mapping[str, str], asked: int) -> int | None:
    """Return how many messages of a finished request were not delivered; None for a status with another meaning.

    ``asked`` is the number if the server does not say.
    """
    status = headers.get("Status", "")
    over = status in ("404", "408") or (status == "409" and headers.get("Description") in _OVER)
    return int(headers.get("Nats-Pending-Messages", asked)) if over else None


def ack_fields(reply: str) -> tuple[int, int, int, int, int] | None:
    """Return the fields of a message's acknowledgement subject; None for a status.

    Returns:
        How many times it was delivered, its stream sequence, its consumer sequence, the server's timestamp (Unix
        nanoseconds), and how many messages the consumer has not delivered yet.
    """
    if not reply.startswith("$JS.ACK."):
        return None
    tokens = reply.split(".")
    if len(tokens) > 9:  # the form with domain and account hash
        tokens = tokens[2:]
    return int(tokens[4]), int(tokens[5]), int(tokens[6]), int(tokens[7]), int(tokens[8])
