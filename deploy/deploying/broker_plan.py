"""The plan of a deployment's broker: its servers, its logins and its settings, each checked."""

import re
import ssl
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from schemas.permissions import BrokerUser

CLIENT_PORT = 4222
_ROUTES_OFFSET, _MONITOR_OFFSET = 2000, 4000
"""Added to a server's client port, they give its port for the cluster's other servers, and that of its health check."""

# An IPv6 address in brackets, or a name or an IPv4 address; then, perhaps, a port.
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
        return self.port + _ROUTES_OFFSET

    @property
    def monitor_port(self) -> int:
        """The loopback port of the health check."""
        return self.port + _MONITOR_OFFSET

    @property
    def listen_host(self) -> str:
        """The address that the server binds: loopback if its host is one, else all addresses of its machine."""
        if self.host.startswith(_LOOPBACK):
            return self.host
        return "[::]" if self.host.startswith("[") else "0.0.0.0"


class BrokerPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What the configuration files of a deployment's broker are made from.

    Attributes:
        nodes: The servers: one, or three that keep three copies.
        users: The logins.
        stream: The stream that holds the log.
        alert_consumers: Durable consumers of alerts that the login ``reader`` may create and read.
        sync: When the servers flush to disk; as ``broker.sync``.
        store: Folder on each server in which the streams are kept.
        max_store: How large the store may grow, in nats-server's notation, such as ``50GB``.
        folder: Folder on each server into which its configuration files are copied.
        tls: Whether clients and servers speak TLS.
        tls_ca: Whether a file of CA certificates is written, too; else the system's are trusted.
        log: Further settings of the section ``log`` that all processes must agree on, by key.
    """

    nodes: tuple[Node, ...]
    users: tuple[BrokerUser, ...]
    stream: str
    alert_consumers: tuple[str, ...]
    sync: str
    store: PurePosixPath
    max_store: str
    folder: PurePosixPath
    tls: bool = False
    tls_ca: bool = False
    log: dict[str, Any] = {}

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
        BadPlan: there are not ``count`` of them, one is not a host, or two servers would share a port.
    """
    listed = [word.strip() for word in hosts.split(",") if word.strip()]
    if not hosts and count == 1:
        listed = ["127.0.0.1"]
    if len(listed) != count:
        named = f"--hosts names {len(listed)}" if listed else "--hosts names none"
        raise BadPlan(f"--nodes {count} needs as many hosts, and {named}: write --hosts {_example(count)}")
    nodes = tuple(_node(number, word) for number, word in enumerate(listed, 1))
    used: set[tuple[str, int]] = set()
    for node in nodes:
        for port in (node.port, node.routes_port, node.monitor_port):
            if (node.host, port) in used:
                raise BadPlan(
                    f"two servers would use port {port} of {node.host}: give each a host or a port of its own"
                )
            used.add((node.host, port))
    return nodes


def check_size(size: str) -> str:
    """Return a size in nats-server's notation unchanged; raises BadPlan if it is none."""
    if not re.fullmatch(r"[1-9][0-9]{0,8}(MB|GB|TB)", size):
        raise BadPlan(f"--max-store {size!r} is no size: write one such as 50GB")
    return size


def check_folder(option: str, folder: str) -> PurePosixPath:
    """Return the path of a folder on the servers.

    Raises:
        BadPlan: it is not absolute (a server may be started in any folder).
    """
    if not folder.startswith("/") or set(folder) & set('"\\\n\r'):
        raise BadPlan(f"{option} {folder!r} is no absolute path: write the folder as the servers will see it")
    return PurePosixPath(folder)


def check_certificates(file: Path, pem: bytes) -> bytes:
    """Return the CA certificates of a file.

    Raises:
        BadPlan: it has none; clients would then trust no server.
    """
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=pem.decode("ascii"))
    except (ssl.SSLError, ValueError) as wrong:
        raise BadPlan(f"--tls-ca {file} holds no certificates as PEM: name the CA's file") from wrong
    return pem


def _node(number: int, word: str) -> Node:
    found = _HOST.fullmatch(word)
    port = int(found["port"] or CLIENT_PORT) if found else 0
    if found is None or not 0 < port <= 65535 - _MONITOR_OFFSET:
        raise BadPlan(
            f"{word!r} is no host of a server: write HOST or HOST:PORT, with a port of at most "
            f"{65535 - _MONITOR_OFFSET}"
        )
    return Node(number, found["host"], port)


def _example(count: int) -> str:
    return ",".join(f"broker-{number}.example" for number in range(1, count + 1))
