"""Deliveries to real HTTP servers: what they are sent, how often, and what is recorded."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
import structlog
from structlog.testing import LogCapture

from actors.webhook import delivering as delivering_module
from actors.webhook import queue as line_module
from actors.webhook.calling import retry_after
from actors.webhook.delivering import alert_of, enrich_failure
from actors.webhook.receivers import is_wanted
from actors.webhook.settings import Receiver, WebhookSettings
from schemas.entry import Severity
from schemas.event import Event
from schemas.vocabulary.webhook import WebhookDelivered, WebhookFailed, WebhookQueued
from tests.actors.llm.scripted import HANGS, Endpoint, Reply, fails, nobody, serving
from tests.actors.runtime.waiting import until
from tests.actors.webhook.alerts import (
    QUICK,
    SECRET,
    TAKES,
    alert,
    delivering,
    dripping,
    message,
    queued,
    receivers,
    url_of,
)

Body = Callable[[Endpoint], Awaitable[None]]


def over(*replies: Reply) -> Callable[[Body], None]:
    """Run a body against a receiver that replies so."""

    def run(body: Body) -> None:
        async def main() -> None:
            async with asyncio.timeout(60), serving(*replies) as endpoint:
                await body(endpoint)

        asyncio.run(main())

    return run


async def forever(_: float) -> None:
    """Sleep in place of a pause, so that time ends the pause and never a call."""
    await asyncio.Event().wait()


async def delivered_by(endpoint: Endpoint, settings: WebhookSettings | None = None, **changes: Any) -> Event:
    async with delivering(settings or receivers("ops"), {"ops": url_of(endpoint)}) as one:
        [recorded] = await one.perform(queued(**changes))
        return recorded


def test_an_alert_is_shared_out_to_those_who_want_it_with_all_that_is_needed_to_deliver_it() -> None:
    async def main() -> None:
        quiet = Receiver(style="slack", url_env="URL_quiet", sources=("reflex",))
        settings = receivers("ops", "chat")
        settings = msgspec.structs.replace(settings, receivers={**settings.receivers, "quiet": quiet})
        told = message(alert())
        async with delivering(settings, dict.fromkeys(settings.receivers, "http://127.0.0.1:9")) as one:
            shares = await one.perform(told)
        for share, name in zip(shares, ("ops", "chat"), strict=True):
            assert isinstance(share, WebhookQueued)
            assert (share.receiver, share.request, share.stored_ns) == (name, "id-9", told.time_ns)
            assert msgspec.convert(share.body, type(told.event)) == told.event

    asyncio.run(main())


def test_an_alert_is_posted_and_its_delivery_recorded() -> None:
    @over(TAKES)
    async def _(endpoint: Endpoint) -> None:
        recorded = await delivered_by(endpoint, count=3)
        assert recorded == WebhookDelivered(
            alert="0f" * 8, status="firing", count=3, request="id-9", receiver="ops", code=200, attempts=1
        )
        [asked] = endpoint.asked
        assert (asked.method, asked.headers["idempotency-key"]) == ("POST", "id-9")
        assert asked.headers["content-type"] == "application/json"
        assert asked.document["text"].startswith("Critical: breaker.failed.")


@pytest.mark.parametrize("status", [408, 425, 429, 500, 503])
def test_a_call_that_fails_for_the_moment_is_made_again(status: int) -> None:
    @over(fails(status), fails(status), TAKES)
    async def _(endpoint: Endpoint) -> None:
        recorded = await delivered_by(endpoint)
        assert isinstance(recorded, WebhookDelivered)
        assert (recorded.attempts, len(endpoint.asked)) == (3, 3)
        assert len({(asked.body, asked.headers["idempotency-key"]) for asked in endpoint.asked}) == 1


@pytest.mark.parametrize("status", [301, 400, 401, 403, 404, 410])
def test_what_another_call_does_not_mend_is_a_dead_letter_at_once(status: int) -> None:
    @over(fails(status))
    async def _(endpoint: Endpoint) -> None:
        recorded = await delivered_by(endpoint)
        assert isinstance(recorded, WebhookFailed)
        assert (recorded.reason, recorded.error, recorded.attempts) == ("receiver_refused", f"HTTP {status}", 1)
        assert (recorded.alert, recorded.request, recorded.failed_seq) == ("0f" * 8, "id-9", 109)
        assert len(endpoint.asked) == 1


def test_a_receiver_that_cannot_be_reached_is_tried_for_as_long_as_the_alert_is_of_use() -> None:
    async def main() -> None:
        settings = msgspec.structs.replace(receivers("ops"), patience_ms=1_000)
        with nobody() as gone:
            async with delivering(settings, {"ops": gone}) as one:
                [recorded] = await one.perform(queued())
        assert isinstance(recorded, WebhookFailed)
        assert (recorded.reason, recorded.error) == ("receiver_unreachable", "ConnectError")
        assert recorded.attempts > 1

    asyncio.run(main())


def test_a_receiver_that_does_not_answer_is_not_waited_for_for_ever() -> None:
    @over(HANGS, TAKES)
    async def _(endpoint: Endpoint) -> None:
        recorded = await delivered_by(endpoint, msgspec.structs.replace(receivers("ops"), answer_ms=50))
        assert isinstance(recorded, WebhookDelivered)
        assert recorded.attempts > 1


def test_nor_is_one_that_never_comes_to_an_end_of_its_answer() -> None:
    async def main() -> None:
        settings = msgspec.structs.replace(receivers("ops"), answer_ms=50, patience_ms=1_000)
        async with dripping() as endless, delivering(settings, {"ops": endless}) as one:
            [recorded] = await one.perform(queued())
        assert isinstance(recorded, WebhookFailed)
        assert (recorded.reason, recorded.error) == ("receiver_unreachable", "CallOverdue")
        assert recorded.attempts > 1

    asyncio.run(main())


def test_a_receiver_s_retry_after_is_heeded_by_all_that_wait_for_it() -> None:
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 2:
            await asyncio.Event().wait()

    @over(fails(429, Retry_After="70"), TAKES)
    async def _(endpoint: Endpoint) -> None:
        settings = msgspec.structs.replace(receivers("ops"), patience_ms=60_000)
        async with delivering(settings, {"ops": url_of(endpoint)}, sleep=sleep) as one:
            first = asyncio.create_task(one.perform(queued(seq=1)))
            await until(lambda: len(waited) == 2, "the pause")
            first.cancel()
            await asyncio.wait([first])
            [recorded] = await one.perform(queued(seq=2))
        assert isinstance(recorded, WebhookDelivered)
        _, first_pause, second_pause = waited
        assert 50 < second_pause <= first_pause <= 60, "no longer than an alert is of use"


def test_a_receiver_that_asks_for_years_is_left_alone_for_as_long_as_an_alert_is_of_use() -> None:
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    @over(fails(503, Retry_After="9" * 400), TAKES)
    async def _(endpoint: Endpoint) -> None:
        settings = msgspec.structs.replace(receivers("ops"), patience_ms=60_000)
        async with delivering(settings, {"ops": url_of(endpoint)}, sleep=sleep) as one:
            await one.perform(queued())
        assert 50 < max(waited) <= 60


def test_what_a_receiver_asks_for_with_a_status_that_is_no_reason_to_wait_is_not_heeded() -> None:
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    @over(fails(404, Retry_After="70"), TAKES)
    async def _(endpoint: Endpoint) -> None:
        async with delivering(receivers("ops"), {"ops": url_of(endpoint)}, sleep=sleep) as one:
            await one.perform(queued(seq=1))
            await one.perform(queued(seq=2))
        assert len(endpoint.asked) == 2
        assert waited == []


def test_no_receiver_is_left_alone_for_more_than_an_hour() -> None:
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    @over(fails(503, Retry_After="86400"), TAKES)
    async def _(endpoint: Endpoint) -> None:
        settings = msgspec.structs.replace(receivers("ops"), patience_ms=WebhookSettings().patience_ms)
        async with delivering(settings, {"ops": url_of(endpoint)}, sleep=sleep) as one:
            await one.perform(queued())
        assert 3_590 < max(waited) <= 3_600


def test_a_turn_lasts_until_its_delivery_is_recorded() -> None:
    @over(TAKES)
    async def _(endpoint: Endpoint) -> None:
        async with delivering(receivers("ops", "chat"), dict.fromkeys(("ops", "chat"), url_of(endpoint))) as one:
            first = queued(seq=1)
            await one.answer(first)
            second = asyncio.create_task(one.perform(queued(seq=2)))
            [other] = await one.perform(queued("chat", seq=3))
            assert isinstance(other, WebhookDelivered)
            assert not second.done()
            assert [asked.headers["idempotency-key"] for asked in endpoint.asked] == ["id-1", "id-3"]
            one.over.ended(first)
            await second
            assert [asked.headers["idempotency-key"] for asked in endpoint.asked] == ["id-1", "id-3", "id-2"]


def test_the_oldest_alert_goes_next_in_whichever_order_they_come() -> None:
    @over(TAKES)
    async def _(endpoint: Endpoint) -> None:
        async with delivering(receivers("ops"), {"ops": url_of(endpoint)}) as one:
            one.over.on_start(0.1)
            ages = {1: 0, 2: 9_000, 3: 4_000}
            await asyncio.gather(*(one.perform(queued(seq=seq, age_ms=age)) for seq, age in ages.items()))
        assert [asked.headers["idempotency-key"] for asked in endpoint.asked] == ["id-2", "id-3", "id-1"]


def test_nobody_is_told_that_an_alert_fires_who_was_told_that_it_is_over() -> None:
    @over(TAKES)
    async def _(endpoint: Endpoint) -> None:
        async with delivering(receivers("ops", "chat"), dict.fromkeys(("ops", "chat"), url_of(endpoint))) as one:
            await one.perform(queued(seq=2, status="resolved", age_ms=1_000))
            [late] = await one.perform(queued(seq=1, age_ms=2_000))
            [elsewhere] = await one.perform(queued("chat", seq=1, age_ms=2_000))
            [other] = await one.perform(queued(seq=3, age_ms=2_000, alert="another"))
            [anew] = await one.perform(queued(seq=4))
        assert isinstance(late, WebhookFailed)
        assert (late.reason, late.attempts, late.request) == ("alert_superseded", 0, "id-1")
        assert [type(each) for each in (elsewhere, other, anew)] == [WebhookDelivered] * 3


def test_a_delivery_waits_but_for_the_time_from_a_call_to_its_record() -> None:
    async def sleep(seconds: float) -> None:
        pausing.set()
        await asyncio.sleep(0)
        await go_on.wait()

    pausing, go_on = asyncio.Event(), asyncio.Event()

    @over(fails(503), HANGS)
    async def _(endpoint: Endpoint) -> None:
        async with delivering(receivers("ops"), {"ops": url_of(endpoint)}, sleep=sleep) as one:
            first, second = queued(seq=1), queued(seq=2)
            trying = [asyncio.create_task(one.answer(each)) for each in (first, second)]
            await pausing.wait()
            assert one.over.waits(first), "between two calls"
            go_on.set()
            await until(lambda: len(endpoint.asked) == 2, "the second call")
            assert not one.over.waits(first)
            endpoint.replies = [TAKES]
            endpoint.drop_all()
            [delivered] = await trying[0]
            assert isinstance(delivered, WebhookDelivered)
            assert not one.over.waits(first), "it is to be recorded"
            one.over.ended(first)
            await trying[1]


def test_a_queued_alert_is_tried_until_the_receiver_is_back_and_others_go_after_it() -> None:
    @over(*[fails(503)] * 4, TAKES)
    async def _(endpoint: Endpoint) -> None:
        async with delivering(receivers("ops"), {"ops": url_of(endpoint)}) as one:
            recorded = await asyncio.gather(*(one.perform(queued(seq=seq)) for seq in (1, 2, 3)))
        assert [type(event) for [event] in recorded] == [WebhookDelivered] * 3
        keys = [asked.headers["idempotency-key"] for asked in endpoint.asked]
        assert keys == [*["id-1"] * 5, "id-2", "id-3"]


def test_an_alert_that_has_become_too_old_is_a_dead_letter() -> None:
    @over(fails(503))
    async def _(endpoint: Endpoint) -> None:
        settings = msgspec.structs.replace(receivers("ops"), patience_ms=1_000)
        async with delivering(settings, {"ops": url_of(endpoint)}, sleep=forever) as one:
            [recorded] = await one.perform(queued())
        assert isinstance(recorded, WebhookFailed)
        assert (recorded.reason, recorded.receiver, recorded.request) == ("receiver_unreachable", "ops", "id-9")
        assert (recorded.error, recorded.attempts, len(endpoint.asked)) == ("HTTP 503", 1, 1)


def test_an_alert_that_waited_in_vain_for_its_turn_says_so() -> None:
    @over(HANGS)
    async def _(endpoint: Endpoint) -> None:
        settings = msgspec.structs.replace(receivers("ops"), patience_ms=60_000)
        async with delivering(settings, {"ops": url_of(endpoint)}) as one:
            holding = asyncio.create_task(one.perform(queued()))
            await until(lambda: bool(endpoint.asked), "a call that holds the line")
            [recorded] = await one.perform(queued(age_ms=59_900))
            holding.cancel()
            await asyncio.wait([holding])
        assert isinstance(recorded, WebhookFailed)
        assert (recorded.reason, recorded.error, recorded.attempts) == ("receiver_overdue", "", 0)


def test_an_alert_that_is_too_old_when_its_turn_comes_is_not_called_for() -> None:
    @over(TAKES)
    async def _(endpoint: Endpoint) -> None:
        recorded = await delivered_by(endpoint, age_ms=QUICK.patience_ms)
        assert isinstance(recorded, WebhookFailed)
        assert (recorded.reason, recorded.attempts, endpoint.asked) == ("receiver_overdue", 0, [])


def test_where_too_many_wait_for_a_receiver_that_is_down_the_oldest_of_them_are_dead_letters(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(line_module, "DOWN_S", 0.0)

    @over(HANGS, fails(503), HANGS, TAKES)
    async def _(endpoint: Endpoint) -> None:
        settings = msgspec.structs.replace(receivers("ops"), backlog=2)
        async with delivering(settings, {"ops": url_of(endpoint)}) as one:
            trying = [asyncio.create_task(one.perform(queued(seq=seq))) for seq in range(4)]
            await until(lambda: len(endpoint.asked) == 1, "a call that holds the line")
            assert not any(each.done() for each in trying), "it may be well"
            endpoint.drop_all()
            [first] = await trying[1]
            await until(lambda: len(endpoint.asked) == 3, "another call that holds the line")
            trying.append(asyncio.create_task(one.perform(queued(seq=4))))
            [second] = await trying[2]
            endpoint.drop_all()
            others = [await trying[place] for place in (0, 3, 4)]
        for failed, request in ((first, "id-1"), (second, "id-2")):
            assert isinstance(failed, WebhookFailed)
            assert (failed.reason, failed.request) == ("receiver_overrun", request)
        assert [type(event) for [event] in others] == [WebhookDelivered] * 3
        assert [asked.headers["idempotency-key"] for asked in endpoint.asked[3:]] == ["id-0", "id-3", "id-4"]


def test_a_receiver_that_is_no_longer_configured_gets_nothing() -> None:
    @over(TAKES)
    async def _(endpoint: Endpoint) -> None:
        recorded = await delivered_by(endpoint, name="gone")
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
            shares = await one.perform(message(alert()))
            [failed] = await one.perform(queued())
        assert isinstance(failed, WebhookFailed)
        said = msgspec.json.encode([*shares, failed, told.entries]).decode()
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


def test_calls_outside_go_through_the_proxy_of_the_environment_and_those_to_this_machine_do_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    @over(TAKES)
    async def _(endpoint: Endpoint) -> None:
        async with serving(TAKES) as proxy:
            monkeypatch.setenv("HTTP_PROXY", proxy.base_url.removesuffix("/v1"))
            urls = {"near": url_of(endpoint), "far": "http://receiver.invalid/hook"}
            async with delivering(receivers("near", "far"), urls) as one:
                recorded = [*await one.perform(queued("near")), *await one.perform(queued("far"))]
        assert [type(event) for event in recorded] == [WebhookDelivered] * 2
        assert [asked.path for asked in proxy.asked] == ["http://receiver.invalid/hook"]
        assert len(endpoint.asked) == 1


@pytest.mark.parametrize("written", ["", "soon", "-5", "Mon, 01 Jan 99999999999 00:00:00 GMT"])
def test_a_senseless_retry_after_asks_for_nothing(written: str) -> None:
    assert retry_after(written, datetime(2026, 1, 1, tzinfo=UTC)) == 0.0


def test_a_dead_letter_that_the_shell_writes_names_the_alert_of_a_place_in_line() -> None:
    written = WebhookFailed(reason="effect_raised", error="E", failed_seq=9, failed_topic="forged_id.webhook.queued")
    request = queued()
    failed = enrich_failure(written, request)
    assert isinstance(failed, WebhookFailed)
    assert isinstance(request.event, WebhookQueued)
    told = alert_of(request.event)
    assert (failed.alert, failed.status, failed.count) == (told.alert, told.status, told.count)
