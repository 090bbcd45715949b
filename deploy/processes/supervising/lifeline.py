"""The lifeline between a supervisor and a child: the child reports that it is ready, and sees when the supervisor ends.

It is a socket pair, one for each child; each end closes with its process. Without a supervisor, readiness is reported
to systemd, if systemd asks for it by the variable ``NOTIFY_SOCKET``.
"""

import asyncio
import os
import socket

READY = b"READY\n"
"""What a child writes to its supervisor once it serves."""


async def wait_ready(ours: socket.socket) -> bool:
    """Wait, at the supervisor, until the child reports that it is ready; False if it closed its end before."""
    ours.setblocking(False)
    loop = asyncio.get_running_loop()
    received = b""
    while READY not in received:
        part = await loop.sock_recv(ours, 64)
        if not part:
            return False
        received += part
    return True


class Lifeline:
    """A child's end of the lifeline. Without a descriptor there is no supervisor, and :meth:`ended` waits for ever."""

    def __init__(self, descriptor: int | None) -> None:
        self._socket = None if descriptor is None else socket.socket(fileno=descriptor)
        if self._socket is not None:
            self._socket.setblocking(False)
            self._socket.set_inheritable(False)

    @property
    def supervised(self) -> bool:
        """Whether a supervisor started this process, together with all others of a set."""
        return self._socket is not None

    def report_ready(self) -> None:
        """Report to the supervisor, or else to systemd, that this process serves."""
        if self._socket is not None:
            self._socket.send(READY)
        else:
            notify_systemd("READY=1")

    async def ended(self) -> None:
        """Wait for the supervisor's end."""
        if self._socket is None:
            await asyncio.Event().wait()
            return
        while await asyncio.get_running_loop().sock_recv(self._socket, 64):
            continue

    def close(self) -> None:
        """Close this end."""
        if self._socket is not None:
            self._socket.close()


def notify_systemd(state: str, *, wait: bool = True) -> None:
    """Send ``state`` (such as ``READY=1``) to the service manager that started this process, if one asked for it.

    Raises:
        OSError: it cannot be reached, or, without ``wait``, does not take it at once.
    """
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.setblocking(wait)
        sender.connect("\0" + address[1:] if address.startswith("@") else address)
        sender.send(state.encode())
