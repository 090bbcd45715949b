"""A faster nats-py client for messages with many headers, with fixes for faults in connecting.

An event carries some sixteen headers. nats-py spends most of the time of a publish and a delivery on them (measured: 55
of 65 µs, and 40 of 54 µs). It also wakes a task for each delivery and each publish. Here a subscription may have a
plain function as its callback, and what is published in one turn of the event loop is written at its end. Unusual
messages are handled by the library's own code, as all messages are if a later version does not call these methods.
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
from nats.errors import Error as NatsError

MAX_UNSENT_BYTES = 64 * 1024
"""Bytes waiting in the socket's buffer above which the library does the writing: it waits until they are sent."""

_VERSION_LINE = b"NATS/1.0\r\n"
_HEADER_NAMES = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")


class HeaderClient(Client):
    """A nats-py client for messages with many headers.

    It stops trying to connect once it is closed, or once connecting was cancelled or timed out.
    """

    _closed_by_caller = False
    # The task that called ``connect``, and how often it had been cancelled before.
    _connecting: tuple[asyncio.Task[Any] | None, int] = None, 0
    _write_is_scheduled = False

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._callbacks: WeakKeyDictionary[Subscription, Callable[[Msg], None]] = WeakKeyDictionary()

    async def listen(self, subject: str, on_message: Callable[[Msg], None]) -> Subscription:
        """Subscribe; ``on_message`` is called with each message as it arrives, in order, and must return at once."""

        async def call_on_message(msg: Msg) -> None:
            on_message(msg)

        subscription = await self.subscribe(subject, cb=call_on_message)
        self._callbacks[subscription] = on_message
        return subscription

    async def connect(self, *arguments: Any, **options: Any) -> None:
        """Connect as the library does."""
        task = asyncio.current_task()
        self._connecting = task, task.cancelling() if task is not None else 0
        await super().connect(*arguments, **options)

    async def close(self) -> None:
        """Close the connection; it is not opened again."""
        # Not in ``_close``: the library also calls that when a server refuses it or goes away, and then must try again.
        self._closed_by_caller = True
        await super().close()

    async def _connect_to_server(self, s: Srv) -> None:
        # A fix: a connecting task is cancelled once: by the library when it reconnects, or by a caller's deadline. If
        # the cancellation meets an attempt that was just refused, ``wait_for`` (until Python 3.12) raises the refusal
        # instead, and the loop over servers goes on for ever: the deadline is not kept, and the event loop, which waits
        # for every task, never ends. But ``cancelling()`` still counts the cancellation.
        task = asyncio.current_task()
        before = self._connecting[1] if task is self._connecting[0] else 0
        if self._closed_by_caller or (task is not None and task.cancelling() > before):
            raise asyncio.CancelledError
        await super()._connect_to_server(s)

    async def _process_connect_init(self) -> None:
        # Two more fixes: the library's reconnecting ends for good at an error that it does not expect, such as one
        # caused by a peer that is no NATS server: the client would stay disconnected, and log nothing. And it takes a
        # server that closes the connection before its first answer for one that it is connected to.
        try:
            await super()._process_connect_init()
            if not self.is_connected:
                raise NatsError("the connection was closed before the server's first answer")
        except (OSError, NatsError, TimeoutError):
            self._drop_connection()
            raise
        except Exception as wrong:
            self._drop_connection()
            raise NatsError(f"what answers is no NATS server ({type(wrong).__name__})") from wrong

    def _drop_connection(self) -> None:
        """Close what an attempt to connect has opened: the next attempt would replace it, and leave it open."""
        for task in (self._reading_task, self._ping_interval_task, self._flusher_task):
            if task is not None:
                task.cancel()
        if self._transport is not None:
            with contextlib.suppress(OSError, AttributeError):  # it may not be open yet
                self._transport.close()  # type: ignore[no-untyped-call]  # the library annotates no types

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
                self._schedule_write()
                return
        await super()._send_publish(subject, reply, payload, payload_size, headers)

    def publish_now(self, subject: str, reply: str, payload: bytes, headers: dict[str, str]) -> bool:
        """Publish in this turn of the event loop, without waiting; return False where that cannot be done.

        It cannot while disconnected, while much waits to be sent, or if the headers are unusual. Nothing is sent then:
        ``publish`` waits, or raises what is wrong.
        """
        if not self.is_connected or self._pending_data_size > MAX_UNSENT_BYTES:
            return False
        block = write_headers(headers)
        if block is None:
            return False
        self.stats["out_msgs"] += 1
        self.stats["out_bytes"] += len(payload)
        first = f"HPUB {subject} {reply} {len(block)} {len(block) + len(payload)}\r\n".encode()
        command = b"".join((first, block, payload, b"\r\n"))
        self._pending.append(command)
        self._pending_data_size += len(command)
        self._schedule_write()
        return True

    def _schedule_write(self) -> None:
        if not self._write_is_scheduled:
            self._write_is_scheduled = True
            asyncio.get_running_loop().call_soon(self._write_now)

    def _write_now(self) -> None:
        """Write what was published in this turn of the event loop, or have the library do so."""
        self._write_is_scheduled = False
        transport = self._transport
        writer = transport._io_writer if isinstance(transport, TcpTransport) else None
        if not self._pending or not self.is_connected:
            return  # the library sends what is left once it is connected again
        if writer is None or writer.transport.get_write_buffer_size() > MAX_UNSENT_BYTES:
            if self._flush_queue is not None and self._flush_queue.empty():
                self._flush_queue.put_nowait(asyncio.get_running_loop().create_future())
            return
        pending, self._pending, self._pending_data_size = self._pending, [], 0
        # If the connection has just dropped, the library notices when it reads, and ends the waiting calls.
        with contextlib.suppress(OSError, RuntimeError):
            writer.write(b"".join(pending))

    async def _process_msg(self, sid: int, subject: bytes, reply: bytes, data: bytes, headers: bytes) -> None:
        subscription = self._subs.get(sid)
        on_message = None if subscription is None else self._callbacks.get(subscription)
        if on_message is None:
            await super()._process_msg(sid, subject, reply, data, headers)
            return
        self.stats["in_msgs"] += 1
        self.stats["in_bytes"] += len(data)
        msg = self._build_message(sid, subject, reply, data, await self._process_headers(headers))
        try:
            on_message(msg)
        except Exception as wrong:
            await self._error_cb(wrong)

    async def _process_headers(self, headers: bytes | None) -> dict[str, str] | None:
        if headers is not None and headers.startswith(_VERSION_LINE):
            return read_headers(headers) or None
        return await super()._process_headers(headers)


def write_headers(headers: dict[str, str]) -> bytes | None:
    """Return headers in NATS's wire format; None if a name or value has characters that would end its line."""
    block = (
        "NATS/1.0\r\n" + "\r\n".join([f"{name}: {value}" for name, value in headers.items()]) + "\r\n\r\n"
    ).encode()
    ends = len(headers) + 2
    if block.count(b"\n") != ends or block.count(b"\r") != ends or not _HEADER_NAMES.fullmatch("".join(headers)):
        return None
    return block


def read_headers(block: bytes) -> dict[str, str]:
    """Return the headers of a block without a status. Values are stripped, and malformed lines are left out."""
    found = {}
    for line in block[len(_VERSION_LINE) :].decode(errors="replace").split("\r\n"):
        name, separator, value = line.partition(":")
        if separator:
            found[name.strip()] = value.strip()
    return found
