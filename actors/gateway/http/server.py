"""The server that runs the application: uvicorn on a socket that is already open, stopped by an event."""

import asyncio
import contextlib
import functools
import socket
from collections.abc import Iterator, Sequence
from typing import Any

import uvicorn
from litestar.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

DRAIN_S = 10
"""Seconds within which requests in progress may end once the server is to stop."""

KEEP_ALIVE_S = 30
"""Seconds for which an idle connection is kept."""

STALL_S = 30.0
"""Seconds within which a client must read some of the data that waits for it; else its connection is cut."""

_MOST_HEADERS = 64 * 1024
"""Most bytes of a request's headers."""


async def serve(
    app: ASGIApp,
    listener: socket.socket,
    stop: asyncio.Event,
    *,
    header_s: float,
    up: asyncio.Event,
    stall_s: float = STALL_S,
) -> None:
    """Serve on ``listener`` until ``stop`` is set, then let requests in progress end.

    Args:
        app: The application.
        listener: A listening socket; closed at the end.
        stop: Ends the serving.
        header_s: Seconds within which a request's headers must arrive; else the connection is closed.
        up: Set once requests are accepted.
        stall_s: See :data:`STALL_S`.
    """
    config = uvicorn.Config(
        app,
        http=functools.partial(_TimedProtocol, header_s=header_s, stall_s=stall_s),  # type: ignore[arg-type]  # it is only called
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="warning",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=DRAIN_S,
        h11_max_incomplete_event_size=_MOST_HEADERS,
    )
    server = _Server(config, up)
    serving = asyncio.create_task(server.serve(sockets=[listener]), name="http")
    stopping = asyncio.create_task(stop.wait(), name="http stops")
    try:
        await asyncio.wait((serving, stopping), return_when=asyncio.FIRST_COMPLETED)
        server.should_exit = True
        await serving
    finally:
        stopping.cancel()
        serving.cancel()


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, up: asyncio.Event) -> None:
        super().__init__(config)
        self._up = up

    async def startup(self, sockets: Sequence[socket.socket] | None = None) -> None:
        await super().startup(list(sockets or ()))
        self._up.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the caller: it has more to stop than a server."""
        yield


class _TimedProtocol(H11Protocol):
    """Closes a connection whose data arrive too slowly, or whose client does not read what is sent.

    The time for headers applies to whatever is awaited while no request is served: headers, or the rest of a body whose
    request was answered before it ended, such as by a refusal. Uvicorn itself waits for headers and for readers without
    limit, and for the rest of a body as long as for another request (:data:`KEEP_ALIVE_S`). Meanwhile its data would
    stay in memory.
    """

    def __init__(self, *args: Any, header_s: float, stall_s: float, **more: Any) -> None:
        super().__init__(*args, **more)
        self._stall_s = stall_s
        self._stall_timer: asyncio.TimerHandle | None = None
        self._header_s = header_s
        self._idle_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._limit_unless_serving()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._limit_unless_serving()

    def on_response_complete(self) -> None:
        body_outstanding = self.cycle.more_body
        super().on_response_complete()
        if body_outstanding or self.conn.trailing_data[0]:  # or the beginning of the next request
            self._limit_unless_serving()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._stop_idle_timer()
        self._stop_stall_timer()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_reader(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_stall_timer()

    def _watch_reader(self, waiting: int) -> None:
        self._stop_stall_timer()
        self._stall_timer = self.loop.call_later(self._stall_s, self._cut_unless_read, waiting)

    def _cut_unless_read(self, waiting: int) -> None:
        left = self.transport.get_write_buffer_size()
        if left >= waiting:
            self.transport.abort()
        else:
            self._watch_reader(left)

    def _stop_stall_timer(self) -> None:
        if self._stall_timer is not None:
            self._stall_timer.cancel()
            self._stall_timer = None

    def _limit_unless_serving(self) -> None:
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_idle_timer()
        elif self._idle_timer is None:
            self._idle_timer = self.loop.call_later(self._header_s, self.transport.close)

    def _stop_idle_timer(self) -> None:
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None
