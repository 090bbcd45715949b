"""The broker of a deployment: its servers, its logins, and what it promises."""

import re
import ssl
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

import msgspec

from schemas.permissions import BrokerUser

CLIENT_PORT = 4222
_ROUTES, _MONITOR = 2000, 4000
"""What is added to a server's client port for that of the other servers, and for that of its health check."""

_HOST = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?)(:(?P<port>[0-9]{1,5}))?")
_LOOPBACK = ("localhost", "127.", "[::1]")


class BadPlan(ValueError):
    """A broker cannot be set up as it was asked for; the message says why."""

    code = "bad_plan"


class Node(msgspec.Struct, frozen=True):
    """A server: its number from 1 on, the host by which clients and other servers reach it, and its client port."""

    number: int
    host: str
    port: int = CLIENT_PORT

    @property
    def routes_port(self) -> int:
        """The port on which the other servers connect."""
        return self.port + _ROUTES

    @property
    def monitor_port(self) -> int:
        """The loopback port of the health check."""
        return self.port + _MONITOR

    @property
    def listens(self) -> str:
        """The address that the server binds: loopback where its host is, else every one."""
        if self.host.startswith(_LOOPBACK):
            return self.host
        return "[::]" if self.host.startswith("[") else "0.0.0.0"


class BrokerPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that the files of a deployment's broker say.

    Attributes:
        nodes: The servers: one, or three that keep three copies.
        users: The logins.
        stream: The stream that holds the log.
        alert_consumers: The durable consumers of alerts that the reader may have.
        sync: When the servers flush to disk; as ``broker.sync``.
        store: Folder of the servers in which the streams are kept.
        max_store: How large the store may grow, in nats-server's words, such as ``50GB``.
        at: Folder of the servers in which these files will lie.
        tls: Whether clients and servers speak TLS.
        tls_ca: Whether a file of CA certificates goes along; else those of the system are trusted.
    """

    nodes: tuple[Node, ...]
    users: tuple[BrokerUser, ...]
    stream: str
    alert_consumers: tuple[str, ...]
    sync: str
    store: PurePosixPath
    max_store: str
    at: PurePosixPath
    tls: bool = False
    tls_ca: bool = False

    @property
    def replicas(self) -> int:
        """How many copies streams, buckets and consumers have."""
        return len(self.nodes)

    @property
    def url(self) -> str:
        """The URL of all servers, for clients."""
        scheme = "tls" if self.tls else "nats"
        return ",".join(f"{scheme}://{node.host}:{node.port}" for node in self.nodes)


def nodes_of(count: int, hosts: str) -> tuple[Node, ...]:
    """Read the hosts of ``count`` servers as people write them: ``HOST`` or ``HOST:PORT``, with commas between.

    Raises:
        BadPlan: their number is another, one is no host, or two servers would share a port.
    """
    words = [word.strip() for word in hosts.split(",") if word.strip()]
    if not hosts and count == 1:
        words = ["127.0.0.1"]
    if len(words) != count:
        named = f"--hosts names {len(words)}" if words else "--hosts names none"
        raise BadPlan(f"--nodes {count} needs as many hosts, and {named}: write --hosts {_example(count)}")
    nodes = tuple(_node(number, word) for number, word in enumerate(words, 1))
    taken: set[tuple[str, int]] = set()
    for node in nodes:
        for port in (node.port, node.routes_port, node.monitor_port):
            if (node.host, port) in taken:
                raise BadPlan(
                    f"two servers would use port {port} of {node.host}: give each a host or a port of its own"
                )
            taken.add((node.host, port))
    return nodes


def check_size(size: str) -> str:
    """Return a size in nats-server's words; raises BadPlan."""
    if not re.fullmatch(r"[1-9][0-9]{0,8}(MB|GB|TB)", size):
        raise BadPlan(f"--max-store {size!r} is no size: write one such as 50GB")
    return size


def check_folder(option: str, folder: str) -> PurePosixPath:
    """Return a folder of the servers; raises BadPlan unless it is absolute: a server may be started from anywhere."""
    if not folder.startswith("/") or set(folder) & set('"\\\n\r'):
        raise BadPlan(f"{option} {folder!r} is no absolute path: write the folder as the servers will see it")
    return PurePosixPath(folder)


def check_certificates(file: Path, pem: bytes) -> bytes:
    """Return the CA certificates of a file; raises BadPlan unless it has some: no client would trust any server."""
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=pem.decode("ascii"))
    except (ssl.SSLError, ValueError) as wrong:
        raise BadPlan(f"--tls-ca {file} holds no certificates as PEM: name the CA's file") from wrong
    return pem


def check_logins(users: Sequence[BrokerUser]) -> None:
    """Raise BadPlan where two logins have one name."""
    names = [user.name for user in users]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise BadPlan(f"two logins are called {', '.join(twice)}: give the workers another name")


def _node(number: int, word: str) -> Node:
    found = _HOST.fullmatch(word)
    port = int(found["port"] or CLIENT_PORT) if found else 0
    if found is None or not 0 < port <= 65535 - _MONITOR:
        raise BadPlan(
            f"{word!r} is no host of a server: write HOST or HOST:PORT, with a port of at most {65535 - _MONITOR}"
        )
    return Node(number, found["host"], port)


def _example(count: int) -> str:
    return ",".join(f"broker-{number}.example" for number in range(1, count + 1))
