"""Sending spans to a collector of OpenTelemetry, encoded as OTLP, over HTTP.

The SDK's own exporter is not used: it sends from a thread that cannot be cancelled, so a collector that hangs would
delay the end of the process.
"""

import asyncio
import gzip
import random
from collections.abc import Mapping, Sequence
from contextlib import aclosing, suppress
from enum import Enum
from importlib.metadata import version
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from deploy.config.loading import BadConfiguration
from deploy.telemetry.spans import Span
from events.loggers import get_logger
from schemas.intake.whole_numbers import read_whole_number

if TYPE_CHECKING:
    from events.libraries.http_client import httpx

PATH = "/v1/traces"
"""The path at which a collector takes traces."""

HEADERS_VARIABLES = ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS")
"""OpenTelemetry's environment variables with headers for the collector, such as a key; the first that is set counts."""

LONGEST_PAUSE_S = 300.0
"""The longest pause that a collector is granted, in seconds: one that asks for a year would never be asked again."""

_REST_S, _LONGEST_REST = 1.0, 64 * 1024
"""Seconds and bytes within which the rest of an answer is read behind its status, which alone counts."""

INSTALL_COMMAND = "pip install 'neuraxis[otel]'"
_RETRY_STATUSES = frozenset({429, 502, 503, 504})
"""HTTP statuses after which OTLP has a client send the same spans again."""

_logger = get_logger("neuraxis.traces")


class Outcome(Enum):
    """Whether the collector took the spans, refused them for good, or cannot be reached at present."""

    SENT = "sent"
    REFUSED = "refused"
    AWAY = "away"


def check_collector(url: str) -> None:
    """Raise BadConfiguration if traces are configured and cannot be sent; an empty ``url`` means no traces."""
    if not url:
        return
    if not _is_address(url):
        raise BadConfiguration(f"telemetry.traces is {url!r}: write the collector's address: http://127.0.0.1:4318")
    try:
        import opentelemetry.exporter.otlp.proto.common.trace_encoder
        import opentelemetry.sdk.trace  # noqa: F401
    except ImportError as missing:
        raise BadConfiguration(f"telemetry.traces needs OpenTelemetry's SDK: {INSTALL_COMMAND}") from missing


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname) and not (parts.query or parts.fragment)


class Collector:
    """Sends spans to a collector; use it in an ``async with`` block.

    Args:
        url: Its address, with or without :data:`PATH`.
        timeout_s: Seconds within which it must answer.
        environment: The environment variables of the process, for headers and OpenTelemetry's own variables.
    """

    def __init__(self, url: str, timeout_s: float, environment: Mapping[str, str]) -> None:
        # Imported here alone: they cost memory and time in every worker, and the SDK may not be installed.
        from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
        from opentelemetry.util.re import parse_env_headers

        from events.libraries.http_client import httpx

        self._url = url if url.rstrip("/").endswith(PATH) else url.rstrip("/") + PATH
        configured = next((environment[name] for name in HEADERS_VARIABLES if environment.get(name)), "")
        headers = {
            **parse_env_headers(configured, liberal=True),
            "content-type": "application/x-protobuf",
            "content-encoding": "gzip",
        }
        self._failures = (httpx.HTTPError, httpx.InvalidURL, OSError)
        self._timeout_s = timeout_s
        self._http = httpx.AsyncClient(timeout=timeout_s, headers=headers)
        attributes = {SERVICE_VERSION: version("neuraxis")}
        if not environment.get("OTEL_SERVICE_NAME"):
            attributes[SERVICE_NAME] = "neuraxis"
        self._resource = Resource.create(attributes)
        self._last_failure = ""

    async def __aenter__(self) -> "Collector":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def send(self, spans: Sequence[Span]) -> tuple[Outcome, float]:
        """Send spans once; return the outcome, and the seconds after which the collector wants them again (0: any)."""
        body = gzip.compress(encode(spans, self._resource), 1)
        try:
            async with asyncio.timeout(self._timeout_s):
                answer = await self._http.send(self._http.build_request("POST", self._url, content=body), stream=True)
        except self._failures as wrong:
            return self._logged(Outcome.AWAY, type(wrong).__name__), 0.0
        await self._pass_over(answer)
        if answer.is_success:
            return self._logged(Outcome.SENT, ""), 0.0
        if answer.status_code in _RETRY_STATUSES:
            after_s = read_whole_number(answer.headers.get("retry-after", "")) or 0
            return self._logged(Outcome.AWAY, str(answer.status_code)), min(float(after_s), LONGEST_PAUSE_S)
        return self._logged(Outcome.REFUSED, str(answer.status_code)), 0.0

    async def _pass_over(self, answer: "httpx.Response") -> None:
        """Read the rest of an answer, so that its connection can be used again, unless it is long or slow."""
        size = 0
        with suppress(*self._failures):
            async with asyncio.timeout(_REST_S), aclosing(answer):
                async for piece in answer.aiter_raw():
                    size += len(piece)
                    if size > _LONGEST_REST:
                        return

    def _logged(self, outcome: Outcome, failure: str) -> Outcome:
        """Log a change: one line when spans begin to fail, and one when they are taken again. Return the outcome."""
        if failure != self._last_failure:
            if failure:
                _logger.warning("traces_not_taken", reason=failure, url=self._url, lost=outcome is Outcome.REFUSED)
            else:
                _logger.info("traces_taken_again", url=self._url)
            self._last_failure = failure
        return outcome


def pause_s(failures: int, least_s: float = 0.0) -> float:
    """Return the seconds to wait after so many failures in a row: doubling from 1 to 30, shortened at random."""
    return max(least_s, min(30.0, 2.0 ** min(failures - 1, 5)) * random.uniform(0.5, 1.0))


def encode(spans: Sequence[Span], resource: Any) -> bytes:
    """Return a request of the OpenTelemetry protocol, as protobuf."""
    from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope
    from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

    kinds = {"internal": SpanKind.INTERNAL, "server": SpanKind.SERVER, "client": SpanKind.CLIENT}
    flags, scope = TraceFlags(TraceFlags.SAMPLED), InstrumentationScope("neuraxis")

    def context(trace: str, span: str, remote: bool) -> SpanContext:
        return SpanContext(int(trace, 16), int(span, 16), is_remote=remote, trace_flags=flags)

    encoded: bytes = encode_spans(
        [
            ReadableSpan(
                name=each.name,
                context=context(each.trace, each.span, False),
                parent=context(each.trace, each.parent, each.remote) if each.parent else None,
                resource=resource,
                attributes=each.attributes,
                kind=kinds[each.kind],
                status=Status(StatusCode.ERROR, each.error) if each.error else Status(StatusCode.UNSET),
                start_time=each.begin_ns,
                end_time=each.end_ns,
                instrumentation_scope=scope,
            )
            for each in spans
        ]
    ).SerializeToString()
    return encoded
