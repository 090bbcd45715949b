"""Listening sockets, mainly the gateway's: reading an address from the configuration, and opening a socket on it.

The supervisor opens the gateway's socket, and the gateway inherits it. So after a restart it gets the connections that
came in meanwhile.
"""

import errno
import socket

import msgspec

from deploy.config.loading import BadConfiguration
from deploy.processes.supervising.supervisor import ProgramRefused
from schemas.intake.whole_numbers import read_whole_number

OFF = "off"
"""The address that means no gateway."""

_BACKLOG = 1024


class Address(msgspec.Struct, frozen=True):
    """A host, which may be a name, and a port; port 0 is any free one."""

    host: str
    port: int


def address_of(http: str, key: str = "gateway.http", such_as: str = "127.0.0.1:8642") -> Address | None:
    """Read the value ``http`` of the setting ``key``: HOST:PORT, with an IPv6 host in brackets; None for ``off``.

    Raises:
        BadConfiguration: it is neither.
    """
    if http.strip().lower() == OFF:
        return None
    host, colon, port = http.strip().rpartition(":")
    number = read_whole_number(port)
    if not colon or not host or number is None or number > 65535:
        raise BadConfiguration(f"{key} is {http!r}: write HOST:PORT, such as {such_as}, or {OFF}")
    return Address(host.removeprefix("[").removesuffix("]"), number)


def listen(address: Address, *, or_else_any: bool) -> socket.socket:
    """Open a listening socket; with ``or_else_any``, on any free port of the host if another program has the port.

    Raises:
        ProgramRefused: it cannot be opened; the message says what to do.
    """
    try:
        return open_listener(address)
    except OSError as wrong:
        if wrong.errno != errno.EADDRINUSE:
            raise ProgramRefused(
                f"the gateway cannot listen on {url_host(address.host)}:{address.port}: {wrong.strerror or wrong}; "
                "choose an address of this machine with --http"
            ) from wrong
        if or_else_any:
            return listen(Address(address.host, 0), or_else_any=False)
        raise ProgramRefused(
            f"{url_host(address.host)}:{address.port} is taken by another program: stop that one, or choose another "
            "address with --http (port 0: any free one)"
        ) from wrong


def url_of(listener: socket.socket) -> str:
    """Return the URL of a listening socket."""
    host, port, *_ = listener.getsockname()
    return f"http://{url_host(host)}:{port}"


def url_host(host: str) -> str:
    """Return a host as URLs write it."""
    return f"[{host}]" if ":" in host else host


def open_listener(address: Address) -> socket.socket:
    """Open a listening socket that does not block; raises OSError if that is not possible."""
    family, *_ = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)[0]
    listener = socket.create_server((address.host, address.port), family=family, backlog=_BACKLOG)
    listener.setblocking(False)
    # Accepted connections inherit this. Without it, a response's body waits 40 ms for the client's acknowledgement of
    # the headers (Nagle's algorithm).
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener
