"""Deliveries to real HTTP servers: what they are sent, how often, and what is recorded."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import LogCapture

from actors.webhook import alert_delivery as delivering_module
from actors.webhook.alert_delivery import alert_of, enrich_failure
from actors.webhook.receivers import QUEUES, is_wanted, queue_numbers
from actors.webhook.settings import Receiver, WebhookSettings
from schemas.catalogue import ALERTS, CATALOGUE
from schemas.effectors.contract import TryLater
from schemas.entry import Severity
from schemas.event import Event, topic_of
from schemas.vocabulary.webhook import WebhookDelivered, WebhookFailed, WebhookQueued
from tests.actors.llm.scripted import HANGS, Endpoint, Reply, fails, nobody, serving
from tests.actors.webhook.alerts import (
    QUICK,
    SECRET,
    TAKES,
    alert,
    at_once,
    delivering,
    dripping,
    message,
    queued,
    receivers,
    url_of,
)
from tests.each import each

Body = Callable[[Endpoint], Awaitable[None]]


def over(*replies: Reply) -> Callable[[Body], None]:
    """Run a body against a receiver that replies so."""

    def run(body: Body) -> None:
        async def main() -> None:
            async with asyncio.timeout(60), serving(*replies) as endpoint:
                await body(endpoint)

        asyncio.run(main())

    return run


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


@each("status", [408, 425, 429, 500, 503])
def test_a_call_that_fails_for_the_moment_is_made_again(status: int) -> None:
    @over(fails(status), fails(status), TAKES)
    async def _(endpoint: Endpoint) -> None:
        recorded = await delivered_by(endpoint)
        assert isinstance(recorded, WebhookDelivered)
        assert (recorded.attempts, len(endpoint.asked)) == (3, 3)
        assert len({(asked.body, asked.headers["idempotency-key"]) for asked in endpoint.asked}) == 1


@each("status", [301, 400, 401, 403, 404, 410])
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


@each(
    ("asked", "patience_s", "heeded"),
    [
        ("70", 21_600, 70),
        ("70", 60, 60),
        ("9" * 400, 60, 60),
        ("86400", 21_600, 3600),
    ],
)
def test_a_receiver_that_asks_to_be_left_alone_is_for_an_hour_at_most_and_while_an_alert_is_of_use(
    asked: str, patience_s: int, heeded: float
) -> None:
    @over(fails(503, Retry_After=asked), TAKES)
    async def _(endpoint: Endpoint) -> None:
        settings = msgspec.structs.replace(receivers("ops"), patience_ms=patience_s * 1000)
        async with delivering(settings, {"ops": url_of(endpoint)}, sleep=at_once) as one:
            await one.perform(queued(age_ms=30_000))
            assert one.pauses == [heeded], "however old the alert is: others wait behind it"


def test_what_a_receiver_asks_for_with_a_status_that_is_no_reason_to_wait_is_not_heeded() -> None:
    @over(fails(404, Retry_After="70"))
    async def _(endpoint: Endpoint) -> None:
        async with delivering(receivers("ops"), {"ops": url_of(endpoint)}) as one:
            [failed] = await one.perform(queued())
            assert isinstance(failed, WebhookFailed)
            assert one.pauses == []


def test_pauses_grow_up_to_a_bound_and_no_further_than_an_alert_is_of_use() -> None:
    @over(*[fails(503)] * 20, TAKES)
    async def _(endpoint: Endpoint) -> None:
        settings = msgspec.structs.replace(receivers("ops"), backoff_first_ms=1_000, backoff_most_ms=8_000)
        brief = msgspec.structs.replace(settings, patience_ms=5_000)
        async with delivering(settings, {"ops": url_of(endpoint)}, sleep=at_once) as one:
            await one.perform(queued())
        bounds = [min(2.0**made, 8.0) for made in range(20)]
        assert all(pause <= bound for pause, bound in zip(one.pauses, bounds, strict=True))
        assert max(one.pauses) > 1.0
        endpoint.replies = [*[fails(503)] * 10, TAKES]
        async with delivering(brief, {"ops": url_of(endpoint)}, sleep=at_once) as one:
            await one.perform(queued())
        assert max(one.pauses) <= 5


def test_an_alert_that_has_become_too_old_is_a_dead_letter_that_tells_what_its_calls_came_to() -> None:
    @over(fails(503))
    async def _(endpoint: Endpoint) -> None:
        settings = msgspec.structs.replace(receivers("ops"), patience_ms=300)
        async with delivering(settings, {"ops": url_of(endpoint)}) as one:
            [recorded] = await one.perform(queued())
        assert isinstance(recorded, WebhookFailed)
        assert (recorded.reason, recorded.receiver, recorded.request) == ("receiver_unreachable", "ops", "id-9")
        assert recorded.error == "HTTP 503"
        assert recorded.attempts - len(endpoint.asked) in (0, 1), "the last call may be cut short on its way"


def test_an_alert_that_is_too_old_when_its_turn_comes_is_not_called_for() -> None:
    @over(TAKES)
    async def _(endpoint: Endpoint) -> None:
        recorded = await delivered_by(endpoint, age_ms=QUICK.patience_ms)
        assert isinstance(recorded, WebhookFailed)
        assert (recorded.reason, recorded.attempts, endpoint.asked) == ("receiver_overdue", 0, [])


def test_an_alert_that_has_waited_for_long_gives_way_where_too_many_wait_behind_it() -> None:
    @over(TAKES)
    async def _(endpoint: Endpoint) -> None:
        settings = msgspec.structs.replace(receivers("ops"), backlog=2)
        async with delivering(settings, {"ops": url_of(endpoint)}) as one:
            for waited_ms, behind, gives_way in ((20_000, 2, True), (20_000, 1, False), (0, 2, False)):
                [recorded] = await one.perform(queued(waited_ms=waited_ms), behind=behind)
                assert isinstance(recorded, WebhookFailed) is gives_way
                assert not isinstance(recorded, WebhookFailed) or recorded.reason == "receiver_overrun"
        assert len(endpoint.asked) == 2


@given(st.sets(st.text("abcdef", min_size=1, max_size=4), max_size=20))
def test_each_receiver_has_a_line_of_its_own_while_there_are_enough(names: set[str]) -> None:
    found = queue_numbers(names)
    assert found.keys() == names
    assert len({*found.values()}) == min(len(names), len(QUEUES))
    assert {str(line) for line in found.values()} <= {*QUEUES}
    assert queue_numbers(sorted(names, reverse=True)) == found


def test_a_receiver_that_no_worker_knows_any_more_gets_nothing_once_none_has_come() -> None:
    @over(TAKES)
    async def _(endpoint: Endpoint) -> None:
        async with delivering(receivers("ops"), {"ops": url_of(endpoint)}) as one:
            [recorded] = await one.perform(queued("gone"))
            assert one.pauses, "it is left to others first"
            one.pauses.clear()
            await one.perform(queued("gone", seq=10, waited_ms=10_000))
            assert not one.pauses
        assert isinstance(recorded, WebhookFailed)
        assert (recorded.reason, recorded.receiver, endpoint.asked) == ("receiver_unknown", "gone", [])


def test_an_alert_that_only_a_receiver_of_other_workers_wants_is_left_to_those_to_share_out() -> None:
    async def main() -> None:
        settings = receivers("ops", least=Severity.CRITICAL)
        async with delivering(settings, {"ops": "http://127.0.0.1:9"}) as one:
            told = message(alert("info.operator"))
            with pytest.raises(TryLater):
                await one.perform(told)
            await asyncio.sleep(settings.unknown_ms / 1000)
            [recorded] = await one.perform(told)
        assert isinstance(recorded, WebhookFailed)
        assert (recorded.reason, recorded.request, recorded.receiver) == ("receiver_unknown", told.id, "")

    asyncio.run(main())


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


@each(
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


def test_a_dead_letter_that_the_shell_writes_names_the_alert_of_a_place_in_line() -> None:
    written = WebhookFailed(reason="effect_raised", error="E", failed_seq=9, failed_topic="forged_id.webhook.queued")
    request = queued()
    failed = enrich_failure(written, request)
    assert isinstance(failed, WebhookFailed)
    assert isinstance(request.event, WebhookQueued)
    told = alert_of(request.event)
    assert (failed.alert, failed.status, failed.count) == (told.alert, told.status, told.count)


def test_no_alert_has_a_version_that_its_place_in_line_does_not_name() -> None:
    """What waits while a release is changed is read by the new one. Before an alert gets a second version,
    ``webhook.queued`` has to say of which its body is, and ``alert_of`` to upcast it: it would be a dead letter.
    """
    assert {CATALOGUE[topic_of(kind)].version for kind in ALERTS.values()} == {1}
