"""nats-py's client with a shorter way of a message in and out, and one fix.

An event carries some sixteen headers. nats-py spends most of the time of a publish and a delivery on them (measured: 55
of 65 µs, and 40 of 54 µs). It also wakes a task for each delivery and each publish; here a subscription may name a
plain function, and what is published in one turn of the event loop is written at its end. Unusual messages are still
handled by the library's own code, and so is every message if a later version no longer calls these methods.
"""

import asyncio
import contextlib
import re
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from nats.aio.client import Client, Srv
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.aio.transport import TcpTransport

MOST_UNSENT = 64 * 1024
"""Bytes that wait in the socket's buffer from which on the library writes, which waits until they are sent."""

_LINE = b"NATS/1.0\r\n"
_NAMES = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")


class HeaderClient(Client):
    """A nats-py client for messages with many headers.

    One that is closed tries to reach no server any more, nor does one whose connecting was cancelled or is out of time.
    """

    _ended = False
    _opening: tuple[asyncio.Task[Any] | None, int] = None, 0
    _writes_soon = False

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._takers: WeakKeyDictionary[Subscription, Callable[[Msg], None]] = WeakKeyDictionary()

    async def listen(self, subject: str, take: Callable[[Msg], None]) -> Subscription:
        """Subscribe; ``take`` is called with each message as it is read, in order, and must return at once."""

        async def taken(msg: Msg) -> None:
            take(msg)

        subscription = await self.subscribe(subject, cb=taken)
        self._takers[subscription] = take
        return subscription

    async def connect(self, *arguments: Any, **options: Any) -> None:
        """Connect as the library does."""
        task = asyncio.current_task()
        self._opening = task, task.cancelling() if task is not None else 0
        await super().connect(*arguments, **options)

    async def close(self) -> None:
        """Close the connection; it is not opened again."""
        # Not ``_close``, which the library calls as well when a server refuses it or goes: then it is to try on.
        self._ended = True
        await super().close()

    async def _connect_to_server(self, s: Srv) -> None:
        # A task is cancelled once: by the library, that reconnects, or by whoever gave connecting so much time. Where
        # that meets an attempt that was just refused, ``wait_for`` (until Python 3.12) raises the refusal in its place,
        # and the loop over servers goes on for ever: no deadline is kept then, and the end of the event loop, which
        # waits for every task, never comes. But the task still knows that it was to end.
        task = asyncio.current_task()
        before = self._opening[1] if task is self._opening[0] else 0
        if self._ended or (task is not None and task.cancelling() > before):
            raise asyncio.CancelledError
        await super()._connect_to_server(s)

    async def _send_publish(
        self, subject: str, reply: str, payload: bytes, payload_size: int, headers: dict[str, str] | None
    ) -> None:
        if headers:
            block = write_headers(headers)
            if block is not None and subject:
                self.stats["out_msgs"] += 1
                self.stats["out_bytes"] += payload_size
                first = f"HPUB {subject} {reply} {len(block)} {len(block) + payload_size}\r\n".encode()
                await self._send_command(b"".join((first, block, payload, b"\r\n")))
                if not self._writes_soon:
                    self._writes_soon = True
                    asyncio.get_running_loop().call_soon(self._write_now)
                return
        await super()._send_publish(subject, reply, payload, payload_size, headers)

    def _write_now(self) -> None:
        """Write what was published in this turn of the event loop, or have the library do so."""
        self._writes_soon = False
        transport = self._transport
        writer = transport._io_writer if isinstance(transport, TcpTransport) else None
        if not self._pending or not self.is_connected:
            return  # the library sends what is left once it is connected again
        if writer is None or writer.transport.get_write_buffer_size() > MOST_UNSENT:
            if self._flush_queue is not None and self._flush_queue.empty():
                self._flush_queue.put_nowait(asyncio.get_running_loop().create_future())
            return
        pending, self._pending, self._pending_data_size = self._pending, [], 0
        # Where the connection has just dropped, the library's reading finds out, and whoever waits is told.
        with contextlib.suppress(OSError, RuntimeError):
            writer.write(b"".join(pending))

    async def _process_msg(self, sid: int, subject: bytes, reply: bytes, data: bytes, headers: bytes) -> None:
        subscription = self._subs.get(sid)
        take = None if subscription is None else self._takers.get(subscription)
        if take is None:
            await super()._process_msg(sid, subject, reply, data, headers)
            return
        self.stats["in_msgs"] += 1
        self.stats["in_bytes"] += len(data)
        msg = self._build_message(sid, subject, reply, data, await self._process_headers(headers))
        try:
            take(msg)
        except Exception as wrong:
            await self._error_cb(wrong)

    async def _process_headers(self, headers: bytes | None) -> dict[str, str] | None:
        if headers is not None and headers.startswith(_LINE):
            return read_headers(headers) or None
        return await super()._process_headers(headers)


def write_headers(headers: dict[str, str]) -> bytes | None:
    """Return headers as they travel, or None for names or values that would break out of their lines."""
    block = (
        "NATS/1.0\r\n" + "\r\n".join([f"{name}: {value}" for name, value in headers.items()]) + "\r\n\r\n"
    ).encode()
    ends = len(headers) + 2
    if block.count(b"\n") != ends or block.count(b"\r") != ends or not _NAMES.fullmatch("".join(headers)):
        return None
    return block


def read_headers(block: bytes) -> dict[str, str]:
    """Return the headers of a block without status, blanks around values removed; lines that are none are left out."""
    found = {}
    for line in block[len(_LINE) :].decode(errors="replace").split("\r\n"):
        name, separator, value = line.partition(":")
        if separator:
            found[name.strip()] = value.strip()
    return found
