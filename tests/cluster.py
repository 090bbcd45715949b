"""Real nats-servers run from the files that ``neuraxis deploy nats-conf`` writes: one, or a cluster of three."""

import asyncio
import os
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from urllib.error import URLError
from urllib.request import urlopen

from deploy.config.loading import RUNNING_SECTIONS, Config, load
from deploy.deploying.broker_plan import BrokerPlan, Node, nodes_of
from deploy.deploying.nats_files import CONFIGURATION
from deploy.deploying.stream_copies import prepare_with_copies
from deploy.deploying.writing_broker import LOGINS, SETTINGS, write_broker
from deploy.processes.broker.users import ADMIN, broker_users
from deploy.processes.broker_access import BrokerChoice, access_of
from deploy.processes.running_set import DataFolder
from events.jetstream import Access
from schemas.permissions import ALERT_CONSUMERS, STREAM, BrokerUser
from tests.broker import die_with, ends_in_time, nats_server, wait_until
from tests.ports import free_port


class Server:
    """One nats-server of a deployment."""

    def __init__(self, node: Node, folder: Path) -> None:
        self.node = node
        self.folder = folder
        self.said = folder / "nats-server.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def runs(self) -> bool:
        """Whether it was started, and not stopped since."""
        return self._process is not None

    def start(self) -> None:
        """Start it; see :meth:`Deployed.wait_ready`."""
        with self.said.open("ab") as said:
            self._process = subprocess.Popen(
                [nats_server(), "-c", str(self.folder / CONFIGURATION)],
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                preexec_fn=die_with(os.getpid()),
            )

    def kill(self) -> None:
        """SIGKILL it; nothing when it does not run."""
        self.end(signal.SIGKILL)

    def stop(self) -> None:
        """SIGTERM it, and wait until it has ended."""
        assert self.runs
        assert self.end(signal.SIGTERM)

    def end(self, how: signal.Signals) -> bool:
        """Signal it, if it runs, and wait until it has ended; a paused one is killed, and False is returned."""
        process, self._process = self._process, None
        return ends_in_time(process, how)

    def signal(self, number: signal.Signals) -> None:
        """Signal it, if it runs."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)

    def pause(self) -> None:
        """SIGSTOP it and wait until it stands still: its connections stay open and silent, as of a cut network."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        os.waitpid(self._process.pid, os.WUNTRACED)

    def resume(self) -> None:
        """SIGCONT it."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def healthy(self) -> bool:
        """Whether it serves, JetStream included; fails with what it said where it has ended."""
        assert self._process is not None
        assert self._process.poll() is None, self.said.read_text()
        try:
            with urlopen(f"http://127.0.0.1:{self.node.monitor_port}/healthz", timeout=2) as answer:
                return bool(answer.status == 200)
        except (URLError, OSError):
            return False


class Deployed:
    """The servers of a deployment, and its logins."""

    def __init__(self, plan: BrokerPlan, folder: Path, server_of: Callable[[Node, Path], Server] = Server) -> None:
        self.plan = plan
        self.folder = folder
        self.logins = folder / LOGINS
        self.servers = [server_of(node, folder / f"broker-{node.number}") for node in plan.nodes]
        self.users: Mapping[str, BrokerUser] = {user.name: user for user in plan.users}

    @property
    def config(self) -> Config:
        """The configuration that every process of the deployment takes."""
        return load(RUNNING_SECTIONS, file=self.folder / SETTINGS, environment={})

    def access(self, user: str) -> Access:
        """Return how a login connects."""
        return access_of(BrokerChoice(context=str(self.logins)), DataFolder(self.folder), user=user)

    def wait_ready(self) -> None:
        """Wait until every server that runs serves."""
        for server in self.servers:
            if server.runs:
                wait_until(server.healthy, f"server {server.node.number} to serve")

    def make_streams(self) -> Sequence[str]:
        """Make the stream and the buckets; return what the command would print."""
        return asyncio.run(prepare_with_copies(self.access(ADMIN), self.config))


def free_hosts(count: int) -> str:
    """Return loopback hosts whose ports, and those that go with them, are free."""
    found: list[str] = []
    while len(found) < count:
        port = free_port()
        node = Node(1, "127.0.0.1", port)
        near = [other for other in found if abs(int(other.partition(":")[2]) - port) % 2000 < 3]
        if not near and _are_free(node.routes_port, node.monitor_port):
            found.append(f"127.0.0.1:{port}")
    return ",".join(found)


def _are_free(*ports: int) -> bool:
    for port in ports:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return False
    return True


@contextmanager
def deployed(
    folder: Path,
    *,
    nodes: int,
    workers: Mapping[str, Sequence[str]],
    passwords: bool = False,
    dev_ca: bool = False,
    hosts: str = "",
    server_of: Callable[[Node, Path], Server] = Server,
) -> Iterator[Deployed]:
    """Write the files of a deployment, start its servers, and make its streams; all ends with the block.

    The servers are on loopback, unless they have ``hosts``; ``server_of`` makes one of its node and folder.
    """
    users = broker_users(STREAM, ALERT_CONSUMERS, workers)
    plan = BrokerPlan(
        nodes=nodes_of(nodes, hosts or free_hosts(nodes)),
        users=users,
        stream=STREAM,
        alert_consumers=ALERT_CONSUMERS,
        sync="always",
        store=PurePosixPath("/its-own-store"),
        max_store="1GB",
        folder=PurePosixPath(str(folder / "broker-1")),
        tls=dev_ca,
        tls_ca=dev_ca,
    )
    write_broker(plan, folder, passwords=passwords, development=dev_ca)
    running = Deployed(plan, folder, server_of)
    for server in running.servers:  # they share a machine here
        file = server.folder / CONFIGURATION
        file.write_text(file.read_text().replace("/its-own-store", str(server.folder / "store")))
    try:
        for server in running.servers:
            server.start()
        running.wait_ready()
        running.make_streams()
        yield running
    finally:
        for server in running.servers:
            if server.runs:
                server.resume()
                server.kill()
