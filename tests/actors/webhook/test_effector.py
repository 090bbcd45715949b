"""The real effector: alerts in a real broker's log, receivers over HTTP, and one record of each delivery."""

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping

import msgspec
import pytest

from actors.runtime.clock import SystemClock
from actors.runtime.effectors.effector_worker import EffectorWorker
from actors.runtime.effectors.spec import EffectorContext
from actors.webhook import EFFECTOR
from actors.webhook.receivers import BadReceiver
from actors.webhook.settings import Receiver, WebhookSettings
from events.jetstream import JetStreamLog
from events.log import Append
from schemas.entry import Severity
from schemas.vocabulary.webhook import WebhookDelivered, WebhookFailed, WebhookQueued
from tests.actors.llm.scripted import HANGS, fails, serving
from tests.actors.on_broker import log_test
from tests.actors.runtime.waiting import until
from tests.actors.webhook.alerts import QUICK, TAKES, alert, receivers, url_of
from tests.actors.webhook.on_log import recorded, stored


@contextlib.asynccontextmanager
async def running(
    log: JetStreamLog,
    settings: WebhookSettings,
    environment: Mapping[str, str],
    name: str = "w",
) -> AsyncIterator[EffectorWorker]:
    around = EffectorContext(log.connection, log.connection.publish, environment, SystemClock())
    stop = asyncio.Event()
    async with asyncio.timeout(90), EFFECTOR.open(settings, around) as effector, asyncio.TaskGroup() as tasks:
        worker = EffectorWorker(log, effector, name=name, stop_deadline=0.1)
        tasks.create_task(worker.run(stop))
        try:
            yield worker
        finally:
            stop.set()


async def ends(log: JetStreamLog, count: int) -> list[WebhookDelivered | WebhookFailed]:
    """Wait until ``count`` deliveries have ended, and return what each came to."""

    async def ended() -> list[WebhookDelivered | WebhookFailed]:
        return [each for each in await recorded(log) if isinstance(each, WebhookDelivered | WebhookFailed)]

    async def there() -> bool:
        return len(await ended()) >= count

    await until(there, f"{count} deliveries")
    return await ended()


@log_test
async def test_an_alert_on_the_log_reaches_every_receiver_in_its_own_form(log: JetStreamLog) -> None:
    async with serving(TAKES) as chat, serving(TAKES) as manager:
        settings = msgspec.structs.replace(
            QUICK,
            receivers={
                "chat": Receiver(style="slack", url_env="CHAT"),
                "am": Receiver(style="alertmanager", url_env="AM", token_env="TOKEN"),
            },
        )
        environment = {"CHAT": url_of(chat), "AM": manager.base_url.removesuffix("/v1"), "TOKEN": "s3cret"}
        async with running(log, settings, environment):
            await log.append([Append([stored(0, alert())])])
            found = await ends(log, 2)
    assert {(each.receiver, each.code) for each in found if isinstance(each, WebhookDelivered)} == {
        ("chat", 200),
        ("am", 200),
    }
    assert chat.asked[0].document["attachments"]
    [asked] = manager.asked
    assert (asked.path, asked.headers["authorization"]) == ("/api/v2/alerts", "Bearer s3cret")
    assert asked.document[0]["labels"]["alertname"] == "breaker.failed"  # type: ignore[index]


@log_test
async def test_what_no_receiver_asks_for_is_not_read(log: JetStreamLog) -> None:
    async with serving(TAKES) as endpoint:
        settings = receivers("ops", least=Severity.CRITICAL)
        async with running(log, settings, {"URL_ops": url_of(endpoint)}) as worker:
            quiet = [stored(number, alert(name)) for number, name in enumerate(("info.operator", "warning.webhook"))]
            await log.append([Append(quiet)])
            await log.append([Append([stored(9, alert())])])
            await ends(log, 1)
    assert worker.counters.stored == 2, "the alert's being shared out, and its delivery to the one receiver"


@log_test
async def test_a_receiver_that_fails_and_recovers_gets_every_alert_once(log: JetStreamLog) -> None:
    async with serving(*[fails(503)] * 12, TAKES) as endpoint:
        settings = receivers("ops")
        async with running(log, settings, {"URL_ops": url_of(endpoint)}):
            for number in range(8):
                await log.append([Append([stored(number, alert(count=number + 1))])])
            found = await ends(log, 8)
    delivered = [each for each in found if isinstance(each, WebhookDelivered)]
    assert sorted(each.count for each in delivered) == list(range(1, 9))
    taken = Counter(asked.headers["idempotency-key"] for asked in endpoint.asked[12:])
    assert set(taken.values()) == {1}
    assert set(taken) == {each.request for each in delivered}


@log_test
async def test_a_worker_of_before_leaves_a_new_receivers_alerts_to_those_that_know_it(log: JetStreamLog) -> None:
    async with serving(TAKES) as endpoint:
        environment = {f"URL_{name}": url_of(endpoint) for name in ("ops", "late")}
        told = msgspec.to_builtins(alert())
        waiting = [
            WebhookQueued(body=told, request=str(place), stored_ns=time.time_ns(), receiver="late", line=line)
            for place, line in enumerate((1, 1, 2))
        ]
        before = msgspec.structs.replace(receivers("ops"), unknown_ms=60_000)
        async with running(log, before, environment, "old") as old:
            await log.append([Append([stored(place, each) for place, each in enumerate(waiting)])])

            async def left() -> bool:
                return old.counters.delivered >= 2

            await until(left, "the old worker to see deliveries that it does not know")
            async with running(log, receivers("ops", "late"), environment, "new"):
                found = await ends(log, 3)
    assert [(type(each), each.receiver) for each in found] == [(WebhookDelivered, "late")] * 3


@log_test
async def test_a_refusal_is_a_dead_letter_on_the_log(log: JetStreamLog) -> None:
    ops = receivers("ops")
    async with serving(fails(404)) as endpoint, running(log, ops, {"URL_ops": url_of(endpoint)}):
        await log.append([Append([stored(0, alert())])])
        [failed] = await ends(log, 1)
    assert isinstance(failed, WebhookFailed)
    assert (failed.reason, failed.error, failed.receiver) == ("receiver_refused", "HTTP 404", "ops")
    assert failed.failed_topic == "forged_id.webhook.queued"


@log_test
async def test_two_workers_share_the_alerts_and_record_each_once(log: JetStreamLog) -> None:
    async with serving(TAKES) as endpoint:
        environment = {"URL_ops": url_of(endpoint)}
        async with running(log, receivers("ops"), environment), running(log, receivers("ops"), environment, "v"):
            await log.append([Append([stored(number, alert(count=number + 1)) for number in range(20)])])
            found = await ends(log, 20)
    assert sorted(each.count for each in found if isinstance(each, WebhookDelivered)) == list(range(1, 21))
    assert len(found) == len(endpoint.asked) == 20


@log_test
async def test_what_a_stopping_worker_was_at_is_delivered_by_the_next(log: JetStreamLog) -> None:
    async with serving(HANGS, TAKES) as endpoint:
        environment = {"URL_ops": url_of(endpoint)}
        async with running(log, receivers("ops"), environment):
            await log.append([Append([stored(0, alert())])])
            await until(lambda: bool(endpoint.asked), "a call")
        async with running(log, receivers("ops"), environment):
            [delivered] = await ends(log, 1)
    assert isinstance(delivered, WebhookDelivered)
    first, second = endpoint.asked
    assert first.headers["idempotency-key"] == second.headers["idempotency-key"] == delivered.request


@log_test
async def test_a_receiver_that_is_down_keeps_no_alert_from_another_however_many_wait_for_it(log: JetStreamLog) -> None:
    async with serving(TAKES) as well, serving(fails(503)) as bad:
        settings = msgspec.structs.replace(receivers("well", "bad"), backoff_first_ms=1_800_000)
        async with running(log, settings, {"URL_well": url_of(well), "URL_bad": url_of(bad)}):
            await log.append([Append([stored(number, alert(count=number + 1)) for number in range(40)])])
            found = await ends(log, 40)
    assert [each.count for each in found if isinstance(each, WebhookDelivered)] == list(range(1, 41))
    assert {each.receiver for each in found} == {"well"}


@log_test
async def test_a_receiver_that_is_removed_leaves_dead_letters_and_a_new_one_begins_with_new_alerts(
    log: JetStreamLog,
) -> None:
    async with serving(fails(503)) as bad, serving(TAKES) as well:
        await log.append([Append([stored(number, alert(count=number + 1)) for number in range(3)])])
        async with running(log, receivers("ops"), {"URL_ops": url_of(bad)}):

            async def shared_out() -> bool:
                return sum(isinstance(each, WebhookQueued) for each in await recorded(log)) == 3

            await until(shared_out, "all to be shared out")
        async with running(log, receivers("chat"), {"URL_chat": url_of(well)}, "v"):
            await ends(log, 3)
            await log.append([Append([stored(3, alert(count=4))])])
            found = await ends(log, 4)
    failed = [each for each in found if isinstance(each, WebhookFailed)]
    assert [(each.receiver, each.count, each.reason) for each in failed] == [
        ("ops", count, "receiver_unknown") for count in (1, 2, 3)
    ]
    assert [(each.receiver, each.count) for each in found if isinstance(each, WebhookDelivered)] == [("chat", 4)]


@log_test
async def test_settings_without_a_receiver_are_refused_in_words(log: JetStreamLog) -> None:
    with pytest.raises(BadReceiver, match="no receiver is configured"):
        async with running(log, WebhookSettings(), {}):
            raise AssertionError("opened")
    with pytest.raises(BadReceiver, match="no alert has the source 'nobody'"):
        async with running(log, receivers("ops", sources=("nobody",)), {"URL_ops": "http://127.0.0.1:9"}):
            raise AssertionError("opened")
