"""What a collector answers: spans refused under a good status, pages of others, slow bodies, and pauses it asks for."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceResponse,
)
from structlog.testing import capture_logs

from deploy.telemetry.collector import MOST_PAUSE_S, Collector, Outcome, Sent
from deploy.telemetry.collector_answers import MOST_BYTES, answer_of
from deploy.telemetry.spans import Span
from tests.deploy.telemetry.receiver import Receiver, receiving
from tests.each import each

SPAN = Span(
    name="exchange", trace="1" * 32, span="2" * 16, parent="", remote=False, kind="server", begin_ns=1, end_ns=2,
    attributes={}, error="",
)  # fmt: skip
TIMEOUT_S = 1.0


def partial(refused: int, message: str) -> bytes:
    found = ExportTracePartialSuccess(rejected_spans=refused, error_message=message)
    return ExportTraceServiceResponse(partial_success=found).SerializeToString()


async def sent(url: str, *, count: int = 4, timeout_s: float = TIMEOUT_S) -> Sent:
    async with Collector(url, timeout_s, {}) as collector:
        return await collector.send([SPAN] * count)


def answered(body: bytes, kind: str, status: int = 200, retry_after: str = "") -> Sent:
    def prepare(receiver: Receiver) -> None:
        receiver.body, receiver.kind, receiver.retry_after = body, kind, retry_after

    with receiving(status) as receiver:
        prepare(receiver)
        return asyncio.run(sent(receiver.url))


PROTOBUF, JSON = "application/x-protobuf", "application/json"


@each(
    ("body", "kind"),
    [
        (partial(3, "span too old"), PROTOBUF),
        (json.dumps({"partialSuccess": {"rejectedSpans": "3", "errorMessage": "span too old"}}).encode(), JSON),
        (json.dumps({"partialSuccess": {"rejectedSpans": 3}}).encode(), JSON),
    ],
)
def test_spans_that_a_good_answer_refuses_are_counted_as_refused_and_told(body: bytes, kind: str) -> None:
    with capture_logs() as lines:
        assert answered(body, kind) == Sent(Outcome.SENT, refused=3)
    [line] = [line for line in lines if line["event"] == "traces_not_taken"]
    assert line["lost"] is True
    assert line.get("detail", "") in ("span too old", "")


def test_no_more_spans_are_refused_than_were_sent() -> None:
    assert answered(partial(1_000, ""), PROTOBUF) == Sent(Outcome.SENT, refused=4)


@each(
    ("body", "kind"),
    [
        (b"", ""),
        (partial(0, "please upgrade"), PROTOBUF),
        (b"{}", JSON),
        (b'{"partialSuccess": {}}', JSON),
        (b'{"partialSuccess": null}', JSON),
        (b"OK", "text/plain"),
        (b'{"code": 0, "message": "success"}', JSON),
        (partial(3, "cut")[:-1], PROTOBUF),
    ],
)
def test_an_answer_that_refuses_nothing_takes_all(body: bytes, kind: str) -> None:
    assert answered(body, kind) == Sent(Outcome.SENT)


@each(
    ("body", "kind"),
    [
        (b"<!doctype html><title>Sign in</title>", "text/html"),
        (b'{"error": "unauthorized"}', JSON),
        (b'{"code": 16, "status": "error", "message": "no such tenant"}', JSON),
        (b'{"success": false}', JSON),
    ],
)
def test_a_page_or_an_error_under_a_good_status_takes_nothing_and_the_spans_wait(body: bytes, kind: str) -> None:
    with capture_logs() as lines:
        assert answered(body, kind).outcome is Outcome.AWAY
    [line] = [line for line in lines if line["event"] == "traces_not_taken"]
    assert line["lost"] is False
    assert "not a collector's answer" in line["reason"]


@each("asked", [("7", 7.0), ("86400000", MOST_PAUSE_S), ("9" * 400, MOST_PAUSE_S), ("soon", 0.0)])
def test_a_pause_that_a_collector_asks_for_has_an_end(asked: tuple[str, float]) -> None:
    assert answered(b"", "", status=503, retry_after=asked[0]) == Sent(Outcome.AWAY, asked[1])


@asynccontextmanager
async def dripping(beginning: bytes) -> AsyncIterator[str]:
    """A server that answers with a beginning, and then with a byte now and then, without end."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        try:
            writer.write(beginning)
            while True:
                await asyncio.sleep(0.05)
                writer.write(b"a")
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


@each(
    ("beginning", "outcome"),
    [
        (b"HTTP/1.1 200 OK\r\nx-more: ", Outcome.AWAY),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n", Outcome.SENT),
        (b"HTTP/1.1 503 Away\r\ncontent-length: 100000\r\n\r\n", Outcome.AWAY),
    ],
    named=["headers", "body", "refusal"],
)
def test_a_collector_that_sends_a_byte_now_and_then_is_not_waited_for_longer(
    beginning: bytes, outcome: Outcome
) -> None:
    async def act() -> Sent:
        async with asyncio.timeout(30), dripping(beginning) as url:
            return await sent(url)

    assert asyncio.run(act()).outcome is outcome


def test_the_beginning_of_an_endless_answer_is_read() -> None:
    assert answered(b"a" * (4 * MOST_BYTES), "text/plain") == Sent(Outcome.SENT)
    assert answer_of(b"a" * MOST_BYTES, "") == answer_of(b"", "")
