"""kill -9 and stalls of workers that work off a backlog: what receivers are told, and what is recorded."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping

import pytest

from events.jetstream import JetStreamLog
from events.log import Append
from schemas.vocabulary.webhook import WebhookDelivered, WebhookFailed
from tests.actors.llm.scripted import HANGS, Endpoint, serving
from tests.actors.on_broker import on_broker
from tests.actors.runtime.waiting import DEADLINE_S, until
from tests.actors.webhook.alerts import TAKES, alert
from tests.actors.webhook.on_log import recorded, stored
from tests.broker import Broker
from tests.events.setting import collect

ALERTS = 60
KILLED_AFTER = (1, 20, 40)
"""Calls at one of the receivers, after which a worker is killed."""


@contextlib.contextmanager
def forwarder(broker: Broker, receivers: Mapping[str, Endpoint]) -> Iterator[subprocess.Popen[bytes]]:
    named = [f"{name}={endpoint.base_url}" for name, endpoint in receivers.items()]
    process = subprocess.Popen([sys.executable, "-m", "tests.actors.webhook.forwarder", broker.url, *named])
    try:
        yield process
    finally:
        process.kill()
        process.wait(DEADLINE_S)


async def judge(log: JetStreamLog, endpoints: Mapping[str, Endpoint], *, deaths: int) -> None:
    """Wait until all is delivered; each was told in order, and twice at most as often as a worker was taken off."""

    async def all_ended() -> bool:
        ended = [each for each in await recorded(log) if isinstance(each, WebhookDelivered | WebhookFailed)]
        return len(ended) >= len(endpoints) * ALERTS

    await until(all_ended, "all deliveries")
    ended = await recorded(log)
    assert not [each for each in ended if isinstance(each, WebhookFailed)]
    delivered = [each for each in ended if isinstance(each, WebhookDelivered)]
    assert len({(each.receiver, each.count) for each in delivered}) == len(delivered) == len(endpoints) * ALERTS
    count = {each.request: each.count for each in delivered}
    for endpoint in endpoints.values():
        told = [count[asked.headers["idempotency-key"]] for asked in endpoint.asked]
        assert len(told) <= ALERTS + deaths
        assert list(dict.fromkeys(told)) == list(range(1, ALERTS + 1)), "in order, each for its first time"


async def store_alerts(log: JetStreamLog) -> None:
    await log.append([Append([stored(number, alert(count=number + 1)) for number in range(ALERTS)])])


def test_each_kill_has_each_receiver_told_one_alert_twice_at_most_and_all_in_order(broker: Broker) -> None:
    async def body(log: JetStreamLog) -> None:
        async with serving(TAKES) as first, serving(TAKES) as second:
            both = {"first": first, "second": second}
            await store_alerts(log)
            for wanted in KILLED_AFTER:
                with forwarder(broker, both):
                    await until(lambda most=wanted: len(first.asked) >= most, "deliveries")
            with forwarder(broker, both):
                await judge(log, both, deaths=len(KILLED_AFTER))

    on_broker(broker, body)


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGSTOP])
def test_where_one_worker_dies_or_stalls_another_goes_on_in_order(broker: Broker, end: signal.Signals) -> None:
    async def body(log: JetStreamLog) -> None:
        async with serving(HANGS) as endpoint:
            one = {"ops": endpoint}
            with forwarder(broker, one) as first, forwarder(broker, one) as second:
                await store_alerts(log)
                await until(lambda: bool(endpoint.asked), "a call")
                [busy] = [each for each in (first, second) if await is_the_one(log, each)]
                os.kill(busy.pid, end)
                endpoint.replies = [TAKES]
                await until(lambda: len(endpoint.asked) > 5, "the other to go on")
                os.kill(busy.pid, signal.SIGCONT)
                await judge(log, one, deaths=2)

    on_broker(broker, body)


async def is_the_one(log: JetStreamLog, worker: subprocess.Popen[bytes]) -> bool:
    """Whether a worker is the one that shares alerts out."""
    found = await collect(log, filters=("log.*.*.webhook.queued",))
    return f"child-{worker.pid}/" in found[0].headers["ce-source"]
