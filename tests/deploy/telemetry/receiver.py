"""A collector of traces: an HTTP server that reads OTLP with OpenTelemetry's own package, refuses, or hangs."""

import gzip
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

HANG = -1
"""Stands for a status that never comes."""


class Receiver:
    """What came to a collector, and how it answers.

    Attributes:
        url: Its address.
        status: What it answers with from now on, or :data:`HANG`.
        body: What it says then, and its ``kind``, the content type.
        retry_after: The header of this name; empty: none.
        asked: Requests so far.
        spans: The spans it took.
        resource: The attributes of what sent them.
        headers: Those of the last request.
        retry_after: What it asks for with each answer; empty: nothing.
    """

    def __init__(self, status: int) -> None:
        self.url = ""
        self.status = status
        self.body = b""
        self.kind = "application/x-protobuf"
        self.retry_after = ""
        self.asked = 0
        self.spans: list[Any] = []
        self.resource: dict[str, str] = {}
        self.headers: Mapping[str, str] = {}
        self.retry_after = ""
        self._over = threading.Event()

    def names(self) -> list[str]:
        """Return the names of the spans that it took."""
        return [span.name for span in tuple(self.spans)]

    def take(self, handler: BaseHTTPRequestHandler) -> None:
        """Take a request, or not."""
        body = handler.rfile.read(int(handler.headers["content-length"]))
        self.asked += 1
        self.headers = dict(handler.headers.items())
        if self.status == HANG:
            self._over.wait()
            return
        if self.status == 200:
            assert handler.path == "/v1/traces"
            request = ExportTraceServiceRequest.FromString(gzip.decompress(body))
            for resource_spans in request.resource_spans:
                self.resource = {each.key: each.value.string_value for each in resource_spans.resource.attributes}
                for scope in resource_spans.scope_spans:
                    self.spans += scope.spans
        handler.send_response(self.status)
        handler.send_header("content-length", str(len(self.body)))
        handler.send_header("content-type", self.kind)
        if self.retry_after:
            handler.send_header("retry-after", self.retry_after)
        handler.end_headers()
        handler.wfile.write(self.body)

    def close(self) -> None:
        """Let go of those that hang."""
        self._over.set()


@contextmanager
def receiving(status: int = 200) -> Iterator[Receiver]:
    """Run a collector for the length of the block."""
    receiver = Receiver(status)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            receiver.take(self)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        receiver.url = f"http://127.0.0.1:{server.server_port}"
        serving = threading.Thread(target=server.serve_forever, args=(0.02,))
        serving.start()
        try:
            yield receiver
        finally:
            receiver.close()
            server.shutdown()
            serving.join()
