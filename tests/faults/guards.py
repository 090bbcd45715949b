"""Worker processes, one kind of work each, over a real broker: to be stopped, and looked at from outside."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from actors.gateway import Client, ExchangeEnd, new_input
from events.decoding import Recorded, decode
from events.jetstream import JetStreamLog
from schemas.event import Event
from schemas.subjects import Partitions
from tests.broker import Broker
from tests.events.setting import collect

PARTITIONS = Partitions(agents=2, sessions=4)
FEW = ("--set", "log.agents=2", "--set", "log.sessions=4")
QUICK = (
    "--set", "swarm.owner_grace_ms=1000",
    "--set", "swarm.start_grace_ms=1000",
    "--set", "swarm.recovery_grace_ms=4000",
)  # fmt: skip
"""Settings by which a stage is lost a second after its lease, instead of eight."""

ALIVE_S = 60.0
LOST_S = 30.0
"""Seconds in which a silent stage has to be noticed, on a machine that is busy with other tests: half of a deadline."""


class Guards:
    """Processes over a broker, by name; ``quick``: with :data:`QUICK` settings."""

    def __init__(self, broker: Broker, folder: Path, *, quick: bool = True) -> None:
        self._settings = (*FEW, *QUICK) if quick else FEW
        self._broker = broker
        self._folder = folder
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self.http = ""

    def start(self, name: str, hosts: Sequence[str], *more: str) -> None:
        """Start a worker of some actors and wait until it serves them."""
        self._run(name, "worker", *hosts, *self._settings, *more)
        self.wait(lambda: "worker_ready" in self.said(name), f"{name} to be ready")

    def serve(self) -> None:
        """Start a gateway and wait until it listens."""
        self._run("gateway", "gateway", "--http", "127.0.0.1:0", *FEW)
        self.wait(lambda: "gateway_ready" in self.said("gateway"), "the gateway to listen")
        line = next(line for line in self.said("gateway").splitlines() if "gateway_ready" in line)
        self.http = next(part for part in line.replace('"', " ").split() if part.startswith("http://")).rstrip(",")

    def kill(self, name: str) -> None:
        """End a process where it stands."""
        self._processes[name].kill()
        self._processes.pop(name).wait(ALIVE_S)

    def signal(self, name: str, number: signal.Signals) -> None:
        """Send a process a signal."""
        os.kill(self._processes[name].pid, number)

    def said(self, name: str) -> str:
        """Return what a process has logged so far."""
        return (self._folder / f"{name}.log").read_text()

    def ready(self) -> tuple[int, dict[str, str]]:
        """Return what the gateway's ``/readyz`` says: its status, and its checks."""
        answer = httpx.get(f"{self.http}/readyz", trust_env=False, timeout=ALIVE_S)
        return answer.status_code, answer.json()["checks"]

    def wait(self, condition: Callable[[], bool], what: str, deadline: float = ALIVE_S) -> None:
        """Wait until something holds; fails where it does not in time, or where a process has ended."""
        end = time.monotonic() + deadline
        while not condition():
            for name, process in self._processes.items():
                assert process.poll() is None, f"{name} has ended:\n{self.said(name)}"
            assert time.monotonic() < end, f"waited {deadline:g} s for {what}"
            time.sleep(0.05)

    def stop(self) -> None:
        """Kill what runs."""
        for name in list(self._processes):
            self.kill(name)

    def _run(self, name: str, *command: str) -> None:
        whole = [sys.executable, "-m", "deploy.cli", *command]
        whole += ["--nats", self._broker.url, "--data", str(self._folder), "--name", name]
        with (self._folder / f"{name}.log").open("wb") as said:
            # Whatever of the machine's own settings would change a worker's.
            environment = {key: value for key, value in os.environ.items() if not key.startswith("NEURAXIS_")}
            self._processes[name] = subprocess.Popen(whole, stdout=said, stderr=said, env=environment)


@contextmanager
def guards(broker: Broker, folder: Path, *, quick: bool = True) -> Iterator[Guards]:
    """Run processes over a broker for the length of a block."""
    folder.mkdir(parents=True, exist_ok=True)
    running = Guards(broker, folder, quick=quick)
    try:
        yield running
    finally:
        running.stop()


def asked(broker: Broker, *texts: str, first: int = 0) -> list[tuple[ExchangeEnd, float]]:
    """Send inputs, each in a session of its own; return their ends, each with the seconds that it took."""

    async def ask() -> list[tuple[ExchangeEnd, float]]:
        log = await JetStreamLog.connect(broker.url, partitions=PARTITIONS)
        try:
            async with Client.open(log) as edge:
                return await asyncio.gather(*(one(edge, number, text) for number, text in enumerate(texts, first)))
        finally:
            await log.close()

    async def one(edge: Client, number: int, text: str) -> tuple[ExchangeEnd, float]:
        began = time.monotonic()
        addressed = new_input(
            text, agent="agent", session=f"session-{number}", partitions=PARTITIONS, now_ns=time.time_ns()
        )
        await edge.submit(addressed)
        return await edge.await_end(addressed.exchange, ALIVE_S), time.monotonic() - began

    return asyncio.run(ask())


def recorded(broker: Broker, *kinds: type[Event]) -> list[Any]:
    """Return the events of some kinds that are in the log, in order; a kind stands for what derives from it, too."""

    async def read() -> list[Any]:
        log = await JetStreamLog.connect(broker.url, partitions=PARTITIONS)
        try:
            events = [decode(stored) for stored in await collect(log)]
        finally:
            await log.close()
        found = [each.message.event for each in events if isinstance(each, Recorded)]
        return [event for event in found if isinstance(event, kinds)]

    return asyncio.run(read())
