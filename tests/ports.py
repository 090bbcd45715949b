"""Ports for programs that are told where to listen: nothing takes one before its program does.

The kernel gives connections, and listeners that ask for any, ports of a range of their own. One of that range that is
free now may be taken a moment later. These are below it, and each test process has a share of them.
"""

import os
import random
import socket

_FIRST, _LAST, _PROCESSES = 20_000, 28_000, 8
_random = random.SystemRandom()


def free_port() -> int:
    """Return a port of 127.0.0.1 that nobody listens on."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    ports = range(_FIRST + worker % _PROCESSES, _LAST, _PROCESSES)
    while True:
        port = _random.choice(ports)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
