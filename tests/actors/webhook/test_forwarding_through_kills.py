"""kill -9 of a worker that works off a backlog: what receivers are told, and what is recorded."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator

from events.jetstream import JetStreamLog
from events.log import Append
from schemas.vocabulary.webhook import WebhookDelivered, WebhookFailed
from tests.actors.llm.scripted import Endpoint, serving
from tests.actors.runtime.waiting import DEADLINE_S, until
from tests.actors.webhook.alerts import TAKES, alert
from tests.actors.webhook.on_log import on_broker, recorded, stored
from tests.broker import Broker

ALERTS = 60
KILLED_AFTER = (1, 20, 40)
"""Calls at one of the receivers, after which a worker is killed."""


@contextlib.contextmanager
def forwarder(broker: Broker, *receivers: tuple[str, Endpoint]) -> Iterator[subprocess.Popen[bytes]]:
    named = [f"{name}={endpoint.base_url}" for name, endpoint in receivers]
    process = subprocess.Popen([sys.executable, "-m", "tests.actors.webhook.forwarder", broker.url, *named])
    try:
        yield process
    finally:
        process.kill()
        process.wait(DEADLINE_S)


def test_each_kill_has_each_receiver_told_one_alert_twice_at_most_and_all_in_order(broker: Broker) -> None:
    async def body(log: JetStreamLog) -> None:
        async def all_ended() -> bool:
            return sum(isinstance(each, WebhookDelivered | WebhookFailed) for each in await recorded(log)) >= 2 * ALERTS

        async with serving(TAKES) as first, serving(TAKES) as second:
            both = (("first", first), ("second", second))
            await log.append([Append([stored(number, alert(count=number + 1)) for number in range(ALERTS)])])
            for wanted in KILLED_AFTER:
                with forwarder(broker, *both):
                    await until(lambda most=wanted: len(first.asked) >= most, "deliveries")
            with forwarder(broker, *both):
                await until(all_ended, "all deliveries")
        ended = await recorded(log)
        assert not [each for each in ended if isinstance(each, WebhookFailed)]
        delivered = [each for each in ended if isinstance(each, WebhookDelivered)]
        assert len({(each.receiver, each.count) for each in delivered}) == len(delivered) == 2 * ALERTS
        count = {each.request: each.count for each in delivered}
        for _, endpoint in both:
            told = [count[asked.headers["idempotency-key"]] for asked in endpoint.asked]
            assert len(told) <= ALERTS + len(KILLED_AFTER)
            assert list(dict.fromkeys(told)) == list(range(1, ALERTS + 1)), "in order, each for its first time"

    on_broker(broker, body)
