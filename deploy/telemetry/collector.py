"""Sending spans to a collector of OpenTelemetry, encoded as OTLP, over HTTP.

The SDK's own exporter is not used: it sends from a thread that cannot be cancelled, so a collector that hangs would
delay the end of the process.
"""

import asyncio
import gzip
import logging
import os
import random
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from enum import Enum
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from deploy.config.loading import BadConfiguration
from deploy.telemetry.collector_answers import MOST_BYTES, Answer, answer_of
from deploy.telemetry.spans import Span
from events.loggers import get_logger
from schemas.intake.retry_after import retry_after

if TYPE_CHECKING:
    from httpx import Response

PATH = "/v1/traces"
"""The path at which a collector takes traces."""

HEADERS_VARIABLES = ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS")
"""OpenTelemetry's environment variables with headers for the collector, such as a key; the first that is set counts."""

INSTALL_COMMAND = "pip install 'neuraxis[otel]'"
MOST_PAUSE_S = 3_600.0
"""Most seconds of pause that a collector may ask for, so that its own header cannot exclude it for long."""

_RETRY_STATUSES = frozenset({429, 502, 503, 504})
"""HTTP statuses after which OTLP has a client send the same spans again."""

_logger = get_logger("neuraxis.traces")


class Outcome(Enum):
    """Whether the collector took the spans, refused them for good, or cannot be reached at present."""

    SENT = "sent"
    REFUSED = "refused"
    AWAY = "away"


class Sent(NamedTuple):
    """How sending spans ended; ``refused`` counts those that the collector refused for good while it took the others.

    ``after_s`` is how many seconds later the collector wants the spans again; 0: it did not say.
    """

    outcome: Outcome
    after_s: float = 0.0
    refused: int = 0


def check_collector(url: str, environment: Mapping[str, str] = os.environ) -> None:
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
    from events.libraries.http_client import BadEnvironment, new_client

    try:
        new_client()
    except BadEnvironment as wrong:
        raise BadConfiguration(f"telemetry.traces cannot be sent: {wrong}") from wrong
    variable, configured = _configured_headers(environment)
    for number, header in enumerate(filter(str.strip, configured.split(",")), 1):
        if not _parsed(header):
            raise BadConfiguration(
                f"{variable}: entry {number} is no NAME=VALUE, and would not be sent: write NAME=VALUE with commas "
                "between, and values URL-encoded, such as %2C for a comma"
            )


def _configured_headers(environment: Mapping[str, str]) -> tuple[str, str]:
    """Return the variable that holds headers, and its value; empty texts if none is set."""
    return next(((name, environment[name]) for name in HEADERS_VARIABLES if environment.get(name)), ("", ""))


def _parsed(headers: str) -> Mapping[str, str]:
    from opentelemetry.util.re import parse_env_headers

    # The parser would log an entry that it leaves out, which may hold a key.
    logging.getLogger(parse_env_headers.__module__).setLevel(logging.ERROR)
    found: Mapping[str, str] = parse_env_headers(headers, liberal=True)
    return found


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
        timeout_s: Seconds within which it must answer, to the last byte.
        environment: The environment variables of the process, for headers and OpenTelemetry's own variables.
    """

    def __init__(self, url: str, timeout_s: float, environment: Mapping[str, str]) -> None:
        # Imported here alone: they cost memory and time in every worker, and the SDK may not be installed.
        from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource

        from events.libraries.http_client import httpx, new_client

        self._url = url if url.rstrip("/").endswith(PATH) else url.rstrip("/") + PATH
        headers = {
            **_parsed(_configured_headers(environment)[1]),
            "content-type": "application/x-protobuf",
            "content-encoding": "gzip",
            "accept-encoding": "identity",  # the bytes read of an answer are limited, not what they would unpack to
        }
        self._failures = (httpx.HTTPError, httpx.InvalidURL, OSError)
        # The whole call is limited below: these limits begin again with every byte.
        self._http = new_client(timeout=httpx.Timeout(None, connect=timeout_s), headers=headers)
        self._timeout_s = timeout_s
        attributes = {SERVICE_VERSION: version("neuraxis")}
        if not environment.get("OTEL_SERVICE_NAME"):
            attributes[SERVICE_NAME] = "neuraxis"
        self._resource = Resource.create(attributes)
        self._last_failure = ""

    async def __aenter__(self) -> "Collector":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def send(self, spans: Sequence[Span]) -> Sent:
        """Send spans once."""
        status, retry_header, answer = 0, "", bytearray()
        kind, content = "", gzip.compress(encode(spans, self._resource), 1)
        try:
            async with (
                asyncio.timeout(self._timeout_s),
                self._http.stream("POST", self._url, content=content) as response,
            ):
                status, retry_header = response.status_code, response.headers.get("retry-after", "")
                kind = response.headers.get("content-type", "")
                if response.is_success:
                    await _read(response, answer)
        except TimeoutError:
            if not status:
                return Sent(self._logged(Outcome.AWAY, f"no answer within {self._timeout_s:g} s"))
        except self._failures as wrong:
            if not status:
                return Sent(self._logged(Outcome.AWAY, type(wrong).__name__))
        # If the body broke off or came too late, the part that came is used: the status said that they were taken.
        if 200 <= status < 300:
            return self._judged(answer_of(bytes(answer), kind), len(spans), retry_header)
        if status in _RETRY_STATUSES:
            return Sent(self._logged(Outcome.AWAY, str(status)), _pause_asked_for(retry_header))
        return Sent(self._logged(Outcome.REFUSED, str(status)))

    def _judged(self, answer: Answer, count: int, retry_header: str) -> Sent:
        """Judge an answer with a good status: it may say that spans were refused, or come from another server."""
        if not answer.is_collectors:
            return Sent(self._logged(Outcome.AWAY, answer.message), _pause_asked_for(retry_header))
        if refused := min(answer.refused, count):
            self._logged(Outcome.REFUSED, "some spans refused", detail=answer.message)
            return Sent(Outcome.SENT, refused=refused)
        return Sent(self._logged(Outcome.SENT, ""))

    def _logged(self, outcome: Outcome, failure: str, detail: str = "") -> Outcome:
        """Log a change: one line when spans begin to fail, and one when they are taken again. Return the outcome.

        ``detail`` is what the collector said the first time: it may differ from call to call.
        """
        if failure != self._last_failure:
            if failure:
                more = {"detail": detail} if detail else {}
                lost = outcome is Outcome.REFUSED
                _logger.warning("traces_not_taken", reason=failure, url=self._url, lost=lost, **more)
            else:
                _logger.info("traces_taken_again", url=self._url)
            self._last_failure = failure
        return outcome


async def _read(response: "Response", answer: bytearray) -> None:
    async for part in response.aiter_raw():
        answer += part[: MOST_BYTES - len(answer)]
        if len(answer) == MOST_BYTES:
            return


def _pause_asked_for(header: str) -> float:
    return min(retry_after(header, datetime.now(UTC)), MOST_PAUSE_S)


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
