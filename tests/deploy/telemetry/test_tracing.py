"""Traces of a real log, and collectors that refuse, hang, or come back: nothing waits for them, and no span is lost."""

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import pytest

from deploy.config.loading import BadConfiguration
from deploy.telemetry.collector import HEADERS_VARIABLES, Collector, check_collector, pause_s
from deploy.telemetry.process_metrics import TraceCounts
from deploy.telemetry.tracing import Tracing
from events.jetstream.log import JetStreamLog
from events.log import Append, Record, Stored
from tests.broker import Broker
from tests.deploy.telemetry.receiver import HANG, Receiver, receiving
from tests.each import each
from tests.events.ledger.messages import exchanges

DEADLINE_S = 60.0
MOST = 10
OF_ONE = {"reflex passed", "router mode_selected", "responder emitted", "exchange"}
KEY = {"OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20secret"}


async def append(log: JetStreamLog, messages: Sequence[Stored]) -> None:
    for start in range(0, len(messages), 500):
        portion = messages[start : start + 500]
        await log.append([Append([Record(each.subject, each.headers, each.data) for each in portion])])


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while not condition():  # noqa: ASYNC110 - part of it happens in a server's thread
            await asyncio.sleep(0.01)


@contextlib.asynccontextmanager
async def tracing(
    log: JetStreamLog, receiver: Receiver, file: Path, timeout_s: float = 5.0
) -> AsyncIterator[TraceCounts]:
    """Send traces to a collector for the length of the block, and see that the task ends at once when it is over."""
    counts = TraceCounts()
    async with Collector(receiver.url, timeout_s, KEY) as collector:
        running = Tracing(
            log.as_stored(), collector, file, counts, gather_s=0.0, most_waiting=MOST, pause=lambda *_: 0.01
        )
        task = asyncio.create_task(running.run())
        try:
            await until(lambda: running.following)
            yield counts
        finally:
            task.cancel()
            done, _ = await asyncio.wait((task,), timeout=DEADLINE_S)
            assert done
            assert task.cancelled()


def of_each(receiver: Receiver) -> Counter[str]:
    """Return how often each span came, by its ids."""
    return Counter(span.trace_id.hex() + span.span_id.hex() for span in tuple(receiver.spans))


def test_whatever_a_collector_does_every_span_comes_once_it_takes_them(broker: Broker, tmp_path: Path) -> None:
    """It refuses connections at first, hangs, is overloaded, and then takes all: the log grows meanwhile."""
    messages = exchanges(12)

    async def body() -> None:
        log = await JetStreamLog.connect(broker.url)
        try:
            with receiving(HANG) as receiver:
                taken, receiver.url = receiver.url, "http://127.0.0.1:9"
                async with tracing(log, receiver, tmp_path / "traces", timeout_s=0.2) as counts:
                    await append(log, messages[:16])
                    await until(lambda: counts.failures >= 2)
                assert receiver.asked == 0
                receiver.url = taken
                async with tracing(log, receiver, tmp_path / "traces", timeout_s=0.2) as counts:
                    await append(log, messages[16:32])
                    await until(lambda: receiver.asked >= 2 and counts.failures >= 2)
                    receiver.status = 503
                    failures = counts.failures
                    await until(lambda: counts.failures > failures + 1)
                    await append(log, messages[32:])
                    receiver.status = 200
                    await until(lambda: len(receiver.spans) >= 48)
                    await until(lambda: counts.waiting == 0)
                    assert counts.sent == 48
                    assert set(receiver.names()) == OF_ONE
                    assert set(of_each(receiver).values()) == {1}
                    assert (receiver.resource["service.name"], receiver.headers["authorization"]) == (
                        "neuraxis",
                        "Bearer secret",
                    )
        finally:
            await log.connection.close()

    asyncio.run(body())


def test_a_process_that_starts_again_goes_on_where_the_collector_was(broker: Broker, tmp_path: Path) -> None:
    messages, file = exchanges(3), tmp_path / "traces"

    async def body() -> None:
        log = await JetStreamLog.connect(broker.url)
        try:
            await append(log, messages[:4])  # before it runs for the first time: not traced
            with receiving() as receiver:
                async with tracing(log, receiver, file) as counts:
                    await append(log, messages[4:10])  # the last exchange is open
                    await until(lambda: counts.sent == 5)
                    await until(lambda: file.exists() and json.loads(file.read_text())["sent"] == 10)
                async with tracing(log, receiver, file):
                    await append(log, messages[10:])
                    await until(lambda: len(receiver.spans) >= 8)
                assert receiver.names().count("exchange") == 2
                assert set(of_each(receiver).values()) == {1}
                file.write_text('{"sent": 999, "open": 3}')  # of another log
                async with tracing(log, receiver, file) as counts:
                    await append(log, exchanges(4)[12:])
                    await until(lambda: counts.sent == 4)
        finally:
            await log.connection.close()

    asyncio.run(body())


def test_spans_that_are_refused_for_good_are_not_sent_again(broker: Broker, tmp_path: Path) -> None:
    async def body() -> None:
        log = await JetStreamLog.connect(broker.url)
        try:
            with receiving(400) as receiver:
                async with tracing(log, receiver, tmp_path / "traces") as counts:
                    await append(log, exchanges(1))
                    await until(lambda: counts.refused == 4)
                    receiver.status = 200
                    await append(log, exchanges(2)[4:])
                    await until(lambda: counts.sent == 4)
                    assert counts.failures == 0
        finally:
            await log.connection.close()

    asyncio.run(body())


def test_reading_pauses_while_too_many_spans_wait(broker: Broker, tmp_path: Path) -> None:
    messages = exchanges(12)

    async def body() -> None:
        log = await JetStreamLog.connect(broker.url)
        try:
            with receiving(503) as receiver:
                async with tracing(log, receiver, tmp_path / "traces") as counts:
                    await append(log, messages[: 2 * MOST])
                    await until(lambda: counts.waiting >= MOST)
                    held = counts.waiting
                    await append(log, messages[2 * MOST :])
                    failures = counts.failures
                    await until(lambda: counts.failures > failures + 5)
                    assert counts.waiting <= max(held, 2 * MOST)
                    receiver.status = 200
                    await until(lambda: counts.sent == len(messages))
                    assert counts.waiting == 0
        finally:
            await log.connection.close()

    asyncio.run(body())


@each("url", ["127.0.0.1:4318", "ftp://collector", "http://", "http://collector?key=1"])
def test_an_address_that_is_none_is_refused_with_how_to_write_it(url: str) -> None:
    with pytest.raises(BadConfiguration, match=r"telemetry\.traces .*http://127\.0\.0\.1:4318"):
        check_collector(url)


def test_traces_without_the_extra_are_refused_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(BadConfiguration, match=r"neuraxis\[otel\]"):
        check_collector("http://127.0.0.1:4318")
    check_collector("")


@pytest.mark.parametrize(
    "headers", ["authorization", "a=b, Bearer secret-key", "=secret-key,a=b", 'authorization="secret-key"']
)
def test_headers_that_would_not_be_sent_are_refused_and_not_shown(
    headers: str, caplog: pytest.LogCaptureFixture
) -> None:
    for variable in HEADERS_VARIABLES:
        with pytest.raises(BadConfiguration, match=rf"^{variable}: entry [12] is no NAME=VALUE") as refused:
            check_collector("http://127.0.0.1:4318", {variable: headers})
        assert "secret-key" not in str(refused.value) + caplog.text
    for good in ("", "authorization=Bearer%20secret", " a=b, ,c = d=e ,"):
        check_collector("http://127.0.0.1:4318", {"OTEL_EXPORTER_OTLP_HEADERS": good})


def test_pauses_double_up_to_half_a_minute_and_heed_the_collector() -> None:
    assert [0.5 <= pause_s(1) <= 1.0, 15.0 <= pause_s(50) <= 30.0, pause_s(1, 7.0)] == [True, True, 7.0]
