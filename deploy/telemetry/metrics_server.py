"""Serving the metrics of a worker process over HTTP, in a thread of its own: a slow reader delays no decision."""

import asyncio
import errno
import socket
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from prometheus_client import CollectorRegistry, make_wsgi_app

from actors.runtime.membership.heartbeat import MetricsAddress
from deploy.processes.listen_address import Address, open_listener, url_host
from events.loggers import get_logger

IDLE_TIMEOUT_S = 5.0
"""Seconds without a byte from a reader after which its connection is closed."""

MOST_READERS = 8
"""The most readers at once; connections of others are closed."""

_ALL_ADDRESSES = {"0.0.0.0", "::"}
_logger = get_logger("neuraxis.metrics")


class _Handler(WSGIRequestHandler):
    timeout = IDLE_TIMEOUT_S

    def log_message(self, *_: object) -> None:
        """Log nothing: Prometheus sends several requests a minute."""

    def handle(self) -> None:
        try:
            super().handle()
        except OSError:  # the reader is gone, or was silent for too long
            self.close_connection = True


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, listener: socket.socket) -> None:
        super().__init__(listener.getsockname()[:2], _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        self.server_name, self.server_port = listener.getsockname()[:2]
        self.setup_environ()
        self._free_readers = threading.BoundedSemaphore(MOST_READERS)

    def process_request(self, request: socket.socket, client_address: object) -> None:  # type: ignore[override]
        if not self._free_readers.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:  # no thread is left for it now
            self._free_readers.release()
            raise

    def process_request_thread(self, request: socket.socket, client_address: object) -> None:  # type: ignore[override]
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free_readers.release()

    def handle_error(self, request: object, client_address: object) -> None:
        _logger.warning("metrics_not_told", exc_info=True)


@asynccontextmanager
async def serving_metrics(
    address: Address | None, registry: CollectorRegistry, process: str
) -> AsyncIterator[MetricsAddress | None]:
    """Serve ``/metrics`` within the block; yields the address, or None if nothing is served.

    No error here stops the process. If another program has the port, a free one is used, which the log names; on an
    address that this machine does not have, nothing is served.

    Args:
        address: Where to listen; None: nowhere.
        registry: The metrics.
        process: The name of the process in its log.
    """
    listener = _listen(address) if address is not None else None
    if listener is None:
        yield None
        return
    server = _Server(listener)
    server.set_app(make_wsgi_app(registry))
    thread = threading.Thread(target=server.serve_forever, args=(0.1,), name="metrics", daemon=True)
    thread.start()
    host, port = listener.getsockname()[:2]
    reachable = f"{url_host(socket.gethostname() if host in _ALL_ADDRESSES else host)}:{port}"
    _logger.info("metrics_served", url=f"http://{reachable}/metrics")
    try:
        yield MetricsAddress(process, reachable)
    finally:
        await asyncio.to_thread(server.shutdown)
        thread.join()
        server.server_close()


def _listen(address: Address) -> socket.socket | None:
    try:
        try:
            return open_listener(address)
        except OSError as wrong:
            if wrong.errno != errno.EADDRINUSE:
                raise
            listener = open_listener(Address(address.host, 0))
    except OSError as wrong:
        wanted = f"{url_host(address.host)}:{address.port}"
        _logger.warning("metrics_not_served", address=wanted, detail=wrong.strerror or str(wrong))
        return None
    _logger.warning("metrics_port_taken", wanted=address.port, instead=listener.getsockname()[1])
    return listener
