"""The program ``python -m deploy.processes.examiner_child FD``: answers one question on a socket, and ends."""

import asyncio
import contextlib
import os
import socket
import sys

import msgspec

from deploy.replaying.log_questions import Asked, answer

_NICENESS = 10
_READ_BYTES = 1 << 16


def main() -> None:
    """Read a question to its end, answer it, and end."""
    with contextlib.suppress(OSError):
        os.nice(_NICENESS)  # live processes come first
    with socket.socket(fileno=int(sys.argv[1])) as connection:
        parts = []
        while part := connection.recv(_READ_BYTES):
            parts.append(part)
        asked = msgspec.json.decode(b"".join(parts), type=Asked)
        connection.sendall(msgspec.json.encode(asyncio.run(answer(asked))))


if __name__ == "__main__":
    main()
