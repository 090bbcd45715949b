"""Deliveries to real HTTP servers: what they are sent, how often, and what is recorded."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence

import msgspec
import pytest
import structlog
from structlog.testing import LogCapture

from actors.webhook import delivering as delivering_module
from actors.webhook.receivers import is_wanted
from actors.webhook.settings import Receiver, WebhookSettings
from schemas.entry import Severity
from schemas.event import Event
from schemas.vocabulary.webhook import WebhookDelayed, WebhookDelivered, WebhookFailed
from tests.actors.llm.scripted import HANGS, Endpoint, Reply, fails, serving
from tests.actors.runtime.waiting import until
from tests.actors.webhook.alerts import QUICK, SECRET, TAKES, alert, delivering, message, receivers, url_of

Body = Callable[[Endpoint], Awaitable[None]]


def over(*replies: Reply) -> Callable[[Body], None]:
    """Run a body against a receiver that replies so."""

    def run(body: Body) -> None:
        async def main() -> None:
            async with asyncio.timeout(60), serving(*replies) as endpoint:
                await body(endpoint)

        asyncio.run(main())

    return run


async def delivered_by(endpoint: Endpoint, event: Event, settings: WebhookSettings | None = None) -> Sequence[Event]:
    async with delivering(settings or receivers("ops"), {"ops": url_of(endpoint)}) as one:
        return await one.perform(message(event))


def test_an_alert_is_posted_and_its_delivery_recorded() -> None:
    @over(TAKES)
    async def _(endpoint: Endpoint) -> None:
        [recorded] = await delivered_by(endpoint, alert(count=3))
        assert recorded == WebhookDelivered(
            alert="0f" * 8, status="firing", count=3, request="id-9", receiver="ops", code=200, attempts=1
        )
        [asked] = endpoint.asked
        assert (asked.method, asked.headers["idempotency-key"]) == ("POST", "id-9")
        assert asked.headers["content-type"] == "application/json"
        assert asked.document["text"].startswith("Critical: breaker.failed.")


def test_a_call_that_fails_for_the_moment_is_made_again() -> None:
    @over(fails(503), TAKES)
    async def _(endpoint: Endpoint) -> None:
        [recorded] = await delivered_by(endpoint, alert())
        assert isinstance(recorded, WebhookDelivered)
        assert (recorded.attempts, len(endpoint.asked)) == (2, 2)
        first, second = endpoint.asked
        assert (first.body, first.headers["idempotency-key"]) == (second.body, second.headers["idempotency-key"])


@pytest.mark.parametrize(("status", "tried"), [(429, 2), (500, 2), (503, 2), (408, 2)])
def test_what_may_pass_is_delayed_with_all_that_is_needed_to_go_on(status: int, tried: int) -> None:
    @over(fails(status))
    async def _(endpoint: Endpoint) -> None:
        told = alert()
        [recorded] = await delivered_by(endpoint, told)
        assert isinstance(recorded, WebhookDelayed)
        assert (recorded.receiver, recorded.request, recorded.attempts) == ("ops", "id-9", tried)
        assert recorded.error == f"HTTP {status}"
        assert msgspec.convert(recorded.body, type(told)) == told


@pytest.mark.parametrize("status", [301, 400, 401, 403, 404, 410])
def test_what_another_call_does_not_mend_is_a_dead_letter_at_once(status: int) -> None:
    @over(fails(status))
    async def _(endpoint: Endpoint) -> None:
        [recorded] = await delivered_by(endpoint, alert())
        assert isinstance(recorded, WebhookFailed)
        assert (recorded.reason, recorded.error, recorded.attempts) == ("receiver_refused", f"HTTP {status}", 1)
        assert (recorded.alert, recorded.request, recorded.failed_seq) == ("0f" * 8, "id-9", 9)
        assert len(endpoint.asked) == 1


def test_a_receiver_that_cannot_be_reached_is_delayed() -> None:
    async def main() -> None:
        async with serving(TAKES) as endpoint:
            gone = url_of(endpoint)
        async with delivering(receivers("ops"), {"ops": gone}) as one:
            [recorded] = await one.perform(message(alert()))
        assert isinstance(recorded, WebhookDelayed)
        assert (recorded.error, recorded.attempts) == ("ConnectError", 2)

    asyncio.run(main())


def test_a_receiver_that_does_not_answer_is_not_waited_for_for_ever() -> None:
    @over(HANGS)
    async def _(endpoint: Endpoint) -> None:
        hasty = msgspec.structs.replace(receivers("ops"), answer_ms=50)
        [recorded] = await delivered_by(endpoint, alert(), hasty)
        assert isinstance(recorded, WebhookDelayed)
        assert recorded.error == "ReadTimeout"


def test_a_receiver_s_retry_after_is_heeded() -> None:
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    @over(fails(429, Retry_After="7"), TAKES)
    async def _(endpoint: Endpoint) -> None:
        async with delivering(receivers("ops"), {"ops": url_of(endpoint)}, sleep=sleep) as one:
            [recorded] = await one.perform(message(alert()))
        assert isinstance(recorded, WebhookDelivered)
        [pause] = waited
        assert 7.0 <= pause <= 7.002


def test_one_receiver_s_failure_keeps_no_other_from_an_alert() -> None:
    @over(fails(500))
    async def _(endpoint: Endpoint) -> None:
        async with serving(TAKES) as healthy:
            urls = {"down": url_of(endpoint), "up": url_of(healthy)}
            async with delivering(receivers("down", "up"), urls) as one:
                down, up = await one.perform(message(alert()))
            assert isinstance(down, WebhookDelayed)
            assert isinstance(up, WebhookDelivered)
            assert (down.receiver, up.receiver) == ("down", "up")


def test_a_delayed_alert_is_tried_until_the_receiver_is_back() -> None:
    @over(*[fails(503)] * 8, TAKES)
    async def _(endpoint: Endpoint) -> None:
        async with delivering(receivers("ops"), {"ops": url_of(endpoint)}) as one:
            [delayed] = await one.perform(message(alert()))
            assert isinstance(delayed, WebhookDelayed)
            [recorded] = await one.perform(message(delayed, seq=10))
        assert isinstance(recorded, WebhookDelivered)
        assert (recorded.request, recorded.attempts) == ("id-9", 9)
        assert {asked.headers["idempotency-key"] for asked in endpoint.asked} == {"id-9"}


def test_while_a_receiver_is_down_new_alerts_queue_without_a_call_and_keep_their_order() -> None:
    @over(*[fails(503)] * 2, TAKES)
    async def _(endpoint: Endpoint) -> None:
        async with delivering(receivers("ops"), {"ops": url_of(endpoint)}) as one:
            [first] = await one.perform(message(alert(count=1), seq=1))
            [second] = await one.perform(message(alert(count=2, status="resolved"), seq=2))
            assert isinstance(first, WebhookDelayed)
            assert isinstance(second, WebhookDelayed)
            assert (first.error, second.error, second.attempts) == ("HTTP 503", "Queued", 0)
            calls = len(endpoint.asked)
            later = [one.perform(message(each, seq=3 + place)) for place, each in enumerate((first, second))]
            await asyncio.gather(*later)
            [third] = await one.perform(message(alert(count=3), seq=5))
        assert isinstance(third, WebhookDelivered)
        assert [asked.headers["idempotency-key"] for asked in endpoint.asked[calls:]] == ["id-1", "id-2", "id-5"]


def test_an_alert_that_has_become_too_old_is_a_dead_letter() -> None:
    @over(fails(503))
    async def _(endpoint: Endpoint) -> None:
        settings = msgspec.structs.replace(receivers("ops"), patience_ms=200)
        async with delivering(settings, {"ops": url_of(endpoint)}) as one:
            [delayed] = await one.perform(message(alert()))
            [recorded] = await one.perform(message(delayed, seq=10))
        assert isinstance(recorded, WebhookFailed)
        assert (recorded.reason, recorded.receiver, recorded.request) == ("receiver_unreachable", "ops", "id-9")
        assert recorded.error == "HTTP 503"
        assert recorded.attempts - len(endpoint.asked) in (0, 1), "time may end a call that has not arrived yet"


def test_an_alert_that_waited_in_vain_for_its_turn_says_so() -> None:
    @over(HANGS)
    async def _(endpoint: Endpoint) -> None:
        settings = msgspec.structs.replace(receivers("ops"), patience_ms=60_000)
        async with delivering(settings, {"ops": url_of(endpoint)}) as one:
            holding = asyncio.create_task(one.perform(message(alert())))
            await until(lambda: bool(endpoint.asked), "a call that holds the line")
            old = WebhookDelayed(
                body=msgspec.to_builtins(alert()),
                request="id-1",
                stored_ns=message(alert(), age_ms=60_000).time_ns,
                receiver="ops",
                attempts=0,
                error="Queued",
            )
            [recorded] = await one.perform(message(old))
            holding.cancel()
            await asyncio.wait([holding])
        assert isinstance(recorded, WebhookFailed)
        assert (recorded.reason, recorded.error) == ("receiver_overdue", "Queued")


def test_a_receiver_that_is_no_longer_configured_gets_nothing() -> None:
    @over(TAKES)
    async def _(endpoint: Endpoint) -> None:
        delayed = WebhookDelayed(
            body=msgspec.to_builtins(alert()),
            request="id-1",
            stored_ns=0,
            receiver="gone",
            attempts=4,
            error="HTTP 500",
        )
        [recorded] = await delivered_by(endpoint, delayed)
        assert isinstance(recorded, WebhookFailed)
        assert (recorded.reason, recorded.receiver, endpoint.asked) == ("receiver_unknown", "gone", [])


def test_no_record_and_no_log_line_holds_an_address(monkeypatch: pytest.MonkeyPatch) -> None:
    told = LogCapture()
    # A logger of the test's own: what the process has set up for its logs is another test's affair.
    logger = structlog.wrap_logger(structlog.PrintLogger(), processors=[told], wrapper_class=structlog.BoundLogger)
    monkeypatch.setattr(delivering_module, "_logger", logger)

    @over(fails(503), fails(503), fails(404))
    async def _(endpoint: Endpoint) -> None:
        async with delivering(receivers("ops"), {"ops": url_of(endpoint)}) as one:
            [delayed] = await one.perform(message(alert()))
            [failed] = await one.perform(message(delayed, seq=10))
        assert isinstance(failed, WebhookFailed)
        said = msgspec.json.encode([delayed, failed, told.entries]).decode()
        assert len(told.entries) == 3
        assert SECRET not in said
        assert endpoint.base_url not in said


@pytest.mark.parametrize(
    ("receiver", "severity", "source", "gets"),
    [
        (Receiver(style="slack"), Severity.CRITICAL, "breaker", True),
        (Receiver(style="slack"), Severity.INFO, "breaker", False),
        (Receiver(style="slack", least=Severity.INFO), Severity.INFO, "breaker", True),
        (Receiver(style="slack", least=Severity.CRITICAL), Severity.WARNING, "breaker", False),
        (Receiver(style="slack", sources=("reflex",)), Severity.CRITICAL, "breaker", False),
        (Receiver(style="slack", sources=("reflex",)), Severity.WARNING, "reflex", True),
        (Receiver(style="slack", least=Severity.INFO), Severity.WARNING, "webhook", False),
    ],
)
def test_a_receiver_gets_what_it_asks_for_and_never_what_its_own_failure_leads_to(
    receiver: Receiver, severity: Severity, source: str, gets: bool
) -> None:
    assert is_wanted(receiver, severity, source) is gets


def test_settings_hold_no_address_and_no_token() -> None:
    fields = set(Receiver.__struct_fields__)
    assert {name for name in fields if name.startswith(("url", "token"))} == {
        "url_env", "url_file", "token_env", "token_file",
    }  # fmt: skip
    assert QUICK.receivers == {}


def test_a_receiver_that_never_comes_to_an_end_of_its_answer_holds_up_no_other() -> None:
    async def drips(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\n")
        with contextlib.suppress(ConnectionError):
            while not reader.at_eof():
                writer.write(b"X-More: to come\r\n")
                await writer.drain()
                await asyncio.sleep(0.02)
        writer.close()

    @over(TAKES)
    async def _(endpoint: Endpoint) -> None:
        settings = msgspec.structs.replace(receivers("good", "bad"), answer_ms=200)
        async with await asyncio.start_server(drips, "127.0.0.1", 0) as server:
            bad = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
            async with delivering(settings, {"good": url_of(endpoint), "bad": bad}) as one:
                recorded = await one.perform(message(alert()))
        found = {type(event): event.receiver for event in recorded}  # type: ignore[attr-defined]
        assert found == {WebhookDelivered: "good", WebhookDelayed: "bad"}
        [delayed] = [event for event in recorded if isinstance(event, WebhookDelayed)]
        assert delayed.error == "CallOverdue"
