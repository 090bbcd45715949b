"""What a campaign can hurt, and how: common to a set with its own broker and to a cluster."""

import asyncio
import json
import os
import signal
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from events.jetstream import JetStreamLog
from tests.faults.campaign.schedule import Fault, Targets
from tests.faults.rig import RunningSet

ALIVE_S = 30.0
"""Seconds in which a program that was killed before has to run again, so that it can be hurt."""
SUBSCRIBER, FOLLOWER = "subscriber", "follower"
"""Two that read nothing of what they asked for: one of the broker, one of the gateway."""


class Place(Protocol):
    """A set under test."""

    targets: Targets
    running: RunningSet

    def log(self) -> AbstractAsyncContextManager[JetStreamLog]:
        """Connect to its log as an operator."""
        ...

    def stops_appends(self, fault: Fault) -> bool:
        """Whether nothing can be appended for a moment: the broker, or the network, is hurt."""
        ...

    async def begin(self, fault: Fault) -> Sequence[int]:
        """Do it; return the process ids of the workers that can lead nothing from now on."""
        ...

    async def end(self, fault: Fault) -> None:
        """Let it be over."""
        ...


class Held:
    """What several faults may hold at a time, such as a network that is cut: over when the last of them is."""

    def __init__(self) -> None:
        self._held: Counter[str] = Counter()
        self._turn = threading.Lock()  # to fill a disk takes a thread of its own

    def take(self, name: str, begin: Callable[[], None]) -> None:
        """Begin, unless it is held already."""
        with self._turn:
            self._held[name] += 1
            if self._held[name] == 1:
                begin()

    def give(self, name: str, end: Callable[[], None]) -> None:
        """End, unless others hold it."""
        with self._turn:
            self._held[name] -= 1
            if not self._held[name]:
                end()


class Programs:
    """Signals to the programs of a running set."""

    def __init__(self, running: RunningSet) -> None:
        self._running = running
        self._paused: dict[Fault, int] = {}

    async def signal(self, name: str, number: signal.Signals) -> int:
        """Send a program a signal, once it runs; return its process id."""
        end = time.monotonic() + ALIVE_S
        while True:
            with suppress(ProcessLookupError, StopIteration):
                if pid := self._running.pid(name):
                    os.kill(pid, number)
                    return pid
            assert time.monotonic() < end, f"{name} was not started again:\n{self._running.said.read_text()[-4000:]}"
            await asyncio.sleep(0.05)

    async def pause(self, fault: Fault) -> int:
        """SIGSTOP a program; return its process id."""
        self._paused[fault] = pid = await self.signal(fault.target, signal.SIGSTOP)
        return pid

    def resume(self, fault: Fault) -> None:
        """SIGCONT the process that was paused, if it has not been killed since."""
        with suppress(ProcessLookupError):
            os.kill(self._paused.pop(fault), signal.SIGCONT)


class Clogs:
    """Consumers that ask for everything, and read nothing."""

    def __init__(self, nats_url: str, login: Path, http: str) -> None:
        self._nats, self._login, self._http = urlsplit(nats_url), login, urlsplit(http)
        self._open: dict[Fault, socket.socket] = {}

    def begin(self, fault: Fault) -> None:
        """Connect and ask; where nobody listens just then, nothing is clogged."""
        where = self._nats if fault.target == SUBSCRIBER else self._http
        assert where.hostname is not None
        clog = socket.socket()
        clog.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        clog.settimeout(5)
        try:
            clog.connect((where.hostname, where.port or 0))
            clog.sendall(self._asks(fault.target))
        except OSError:
            clog.close()
        else:
            self._open[fault] = clog

    def end(self, fault: Fault) -> None:
        """Hang up."""
        if (clog := self._open.pop(fault, None)) is not None:
            clog.close()

    def _asks(self, target: str) -> bytes:
        if target == FOLLOWER:
            return b"GET /api/events HTTP/1.1\r\nHost: %s\r\n\r\n" % self._http.netloc.encode()
        login = json.loads(self._login.read_text())
        options = {"user": login["user"], "pass": login["password"], "verbose": False, "pedantic": False}
        return f"CONNECT {json.dumps(options)}\r\nSUB forged_id.> 1\r\n".encode()
