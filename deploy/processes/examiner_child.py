"""``python -m deploy.processes.examiner_child FD``: answers the question on a socket, and ends."""

import asyncio
import contextlib
import os
import socket
import sys

import msgspec

from deploy.replaying.questions import Asked, answered

_LESS_URGENT = 10
_PIECE = 1 << 16


def main() -> None:
    """Read a question to its end, answer it, and end."""
    with contextlib.suppress(OSError):
        os.nice(_LESS_URGENT)  # what is live comes first
    with socket.socket(fileno=int(sys.argv[1])) as line:
        parts = []
        while part := line.recv(_PIECE):
            parts.append(part)
        asked = msgspec.json.decode(b"".join(parts), type=Asked)
        line.sendall(msgspec.json.encode(asyncio.run(answered(asked))))


if __name__ == "__main__":
    main()
