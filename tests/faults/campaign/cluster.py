"""A set on three machines, each with a broker and workers, on a network between them; Linux, as root."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, contextmanager
from functools import partial
from pathlib import Path

from deploy.deploying.broker_plan import Node
from deploy.deploying.writing_broker import SETTINGS
from deploy.processes.broker import DECIDERS, OBSERVER
from deploy.processes.broker.users import workers_of_actors
from events.jetstream import JetStreamLog
from tests.actors.llm.scripted import in_background, says
from tests.broker import die_with
from tests.cluster import Deployed, Server, deployed
from tests.faults.campaign.places import FOLLOWER, SUBSCRIBER, Clogs, Held, Programs
from tests.faults.campaign.schedule import Fault, Kind, Targets
from tests.faults.machines import Machine, Switch, machines
from tests.faults.rig import RunningSet, running_set, waited

NAMES = ("one.example", "two.example", "three.example")
PROGRAMS = (DECIDERS, "ledger", "effectors", "gateway")
"""What ``neuraxis up`` runs on the first machine, and starts again."""
ENDS_S = 20.0


class ServerOn(Server):
    """A server on a machine."""

    def __init__(self, node: Node, folder: Path, machine: Machine) -> None:
        super().__init__(node, folder)
        self._machine = machine

    def start(self) -> None:
        with self._machine.entered():
            super().start()

    def healthy(self) -> bool:
        with self._machine.entered():  # its health check listens on loopback
            return super().healthy()


class Kept:
    """A process that the campaign itself starts again, as systemd would: a server, or a worker on a machine."""

    def __init__(self, start: Callable[[], subprocess.Popen[bytes]]) -> None:
        self._start = start
        self.process: subprocess.Popen[bytes] | None = start()

    async def end(self, number: signal.Signals) -> None:
        """Signal it, and wait until it has ended: one that is paused does not end before it is killed."""
        process, self.process = self.process, None
        if process is None:
            return
        process.send_signal(number)
        try:
            await asyncio.to_thread(process.wait, ENDS_S)
        except subprocess.TimeoutExpired:
            process.kill()
            await asyncio.to_thread(process.wait, ENDS_S)

    def start(self) -> None:
        """Start it again."""
        self.process = self._start()

    def signal(self, number: signal.Signals) -> None:
        """Signal it, if it runs."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)


class Cluster:
    """See :class:`tests.faults.campaign.places.Place`."""

    def __init__(self, running: RunningSet, brokers: Deployed, workers: dict[str, Kept], switch: Switch) -> None:
        self.running = running
        self._brokers = {f"broker-{server.node.number}": server for server in brokers.servers}
        self._workers = workers
        self._switch = switch
        self._held = Held()
        self._programs = Programs(running)
        run = running.run_file()
        assert run is not None
        nearest = brokers.plan.nodes[0]
        url = f"nats://{nearest.host}:{nearest.port}"
        self._clogs = Clogs(url, brokers.logins / f"{OBSERVER}.json", run.http)
        everything = (*self._brokers, *workers, *PROGRAMS)
        self.targets: Targets = {
            Kind.KILL: everything,
            Kind.RESTART: everything,
            Kind.PAUSE: everything,
            Kind.CUT: NAMES,
            Kind.CLOG: (SUBSCRIBER, FOLLOWER),
        }

    def log(self) -> AbstractAsyncContextManager[JetStreamLog]:
        return self.running.log()

    def stops_appends(self, fault: Fault) -> bool:
        return fault.target in self._brokers or fault.kind is Kind.CUT

    async def begin(self, fault: Fault) -> Sequence[int]:
        hurt = [pid for pid in (self._pid(fault.target),) if pid]
        match fault.kind:
            case Kind.CUT:
                self._held.take(fault.target, lambda: self._switch.cut(fault.target))
            case Kind.CLOG:
                await asyncio.to_thread(self._clogs.begin, fault)
            case Kind.PAUSE if fault.target in PROGRAMS:
                return [await self._programs.pause(fault)]
            case Kind.PAUSE:
                self._signal(fault.target, signal.SIGSTOP)
            case Kind.KILL | Kind.RESTART:
                number = signal.SIGKILL if fault.kind is Kind.KILL else signal.SIGTERM
                if fault.target in PROGRAMS:
                    return [await self._programs.signal(fault.target, number)]
                if fault.target in self._workers:
                    await self._workers[fault.target].end(number)
                else:
                    await asyncio.to_thread(self._brokers[fault.target].end, number)
        return hurt

    def _pid(self, target: str) -> int:
        """Return the process id of the worker that is hurt with a target, or with its machine; 0 for none."""
        worker = self._workers.get(target.partition(".")[0])  # the first machine's is where this looks from
        return worker.process.pid if worker is not None and worker.process is not None else 0

    async def end(self, fault: Fault) -> None:
        match fault.kind:
            case Kind.CUT:
                self._held.give(fault.target, lambda: self._switch.join(fault.target))
            case Kind.CLOG:
                self._clogs.end(fault)
            case Kind.PAUSE if fault.target in PROGRAMS:
                self._programs.resume(fault)
            case Kind.PAUSE:
                self._signal(fault.target, signal.SIGCONT)
            case Kind.KILL | Kind.RESTART if fault.target in self._workers:
                if self._workers[fault.target].process is None:
                    self._workers[fault.target].start()
            case Kind.KILL | Kind.RESTART if fault.target in self._brokers:
                if not self._brokers[fault.target].runs:
                    self._brokers[fault.target].start()

    def _signal(self, target: str, number: signal.Signals) -> None:
        if target in self._workers:
            self._workers[target].signal(number)
        else:
            self._brokers[target].signal(number)


@contextmanager
def cluster_set(folder: Path) -> Iterator[Cluster]:
    """Bring three machines up, a broker on each, a whole set on the first, and workers on the other two."""
    with ExitStack() as stack:
        switch = stack.enter_context(machines(NAMES))
        hosts = [switch.machines[name] for name in NAMES]
        stack.enter_context(hosts[0].entered())
        brokers = stack.enter_context(
            deployed(
                folder / "cluster",
                nodes=3,
                workers=workers_of_actors(),
                passwords=True,
                hosts=",".join(f"{host.address}:4222" for host in hosts),
                server_of=lambda node, place: ServerOn(node, place, hosts[node.number - 1]),
            )
        )
        flags = ("--context", str(brokers.logins), "--config", str(brokers.folder / SETTINGS))
        endpoint = stack.enter_context(in_background(says()))
        serving = ("--llm", endpoint.base_url, "--http", "127.0.0.1:0")
        running = stack.enter_context(running_set(folder / "set", processes=1, flags=(*flags, *serving)))
        workers: dict[str, Kept] = {}
        for host in hosts[1:]:
            name = host.name.partition(".")[0]
            workers[name] = Kept(partial(_worker, host, name, flags, folder))
            stack.callback(_ended, workers[name])
        for name in workers:  # the rate is measured of the whole set
            waited(partial(_is_ready, folder / f"{name}.log"), f"the worker on {name} to be ready")
        yield Cluster(running, brokers, workers, switch)


def _worker(machine: Machine, name: str, flags: Sequence[str], folder: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "deploy.cli", "worker", "all", "--name", name, "--data", str(folder / name)]
    environment = {**os.environ, "NEURAXIS_LLM_URL": "composer"}
    with machine.entered(), (folder / f"{name}.log").open("ab") as said:
        return subprocess.Popen(
            [*command, *flags], stdout=said, stderr=said, env=environment, preexec_fn=die_with(os.getpid())
        )


def _is_ready(said: Path) -> bool:
    return "worker_ready" in said.read_text()


def _ended(worker: Kept) -> None:
    if worker.process is not None:
        worker.process.kill()
        worker.process.wait()
