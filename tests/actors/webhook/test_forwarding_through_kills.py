"""kill -9 and stalls of workers that work off a backlog: what receivers are told, and what is recorded."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping

import pytest

from events.errors import LogError
from events.jetstream import JetStreamLog
from events.log import Append
from schemas.vocabulary.webhook import WebhookDelivered, WebhookFailed
from tests.actors.llm.scripted import HANGS, Endpoint, fails, serving
from tests.actors.on_broker import log_test
from tests.actors.runtime.waiting import DEADLINE_S, until
from tests.actors.webhook.alerts import TAKES, alert
from tests.actors.webhook.forwarder import ACK_WAIT
from tests.actors.webhook.on_log import recorded, stored
from tests.broker import Broker

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


async def judge(log: JetStreamLog, endpoints: Mapping[str, Endpoint], *, deaths: int, refused: int = 0) -> None:
    """Wait until all is delivered; each was told in order, and twice at most as often as a worker was taken off.

    ``refused`` calls at most came to nothing, and were made again.
    """

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
        assert len(told) <= ALERTS + deaths + refused
        assert list(dict.fromkeys(told)) == list(range(1, ALERTS + 1)), "in order, each for its first time"


async def store_alerts(log: JetStreamLog) -> None:
    await log.append([Append([stored(number, alert(count=number + 1)) for number in range(ALERTS)])])


@log_test
async def test_each_kill_has_each_receiver_told_one_alert_twice_at_most_and_all_in_order(
    log: JetStreamLog, broker: Broker
) -> None:
    async with serving(TAKES) as first, serving(TAKES) as second:
        both = {"first": first, "second": second}
        await store_alerts(log)
        for wanted in KILLED_AFTER:
            with forwarder(broker, both):
                await until(lambda most=wanted: len(first.asked) >= most, "deliveries")
        with forwarder(broker, both):
            await judge(log, both, deaths=len(KILLED_AFTER))


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGSTOP])
@log_test
async def test_where_one_worker_dies_or_stalls_another_goes_on_in_order(
    log: JetStreamLog, broker: Broker, end: signal.Signals
) -> None:
    async with serving(HANGS) as endpoint:
        one = {"ops": endpoint}
        with forwarder(broker, one) as busy:
            await store_alerts(log)
            await until(lambda: bool(endpoint.asked), "a call")
            with forwarder(broker, one):
                os.kill(busy.pid, end)
                endpoint.replies = [TAKES]
                await until(lambda: len(endpoint.asked) > 5, "the other to go on")
                os.kill(busy.pid, signal.SIGCONT)
                await judge(log, one, deaths=1)


@pytest.mark.faults
@log_test
async def test_several_workers_keep_the_order_through_kills_stalls_and_a_broker_that_is_away(
    log: JetStreamLog, broker: Broker
) -> None:
    async with (
        serving(TAKES) as well,
        serving(*[fails(503)] * 6, TAKES) as bad,
        serving(fails(429, Retry_After="8"), TAKES) as asks,
        contextlib.AsyncExitStack() as stack,
    ):
        all_of_them = {"well": well, "bad": bad, "asks": asks}
        workers = [stack.enter_context(forwarder(broker, all_of_them)) for _ in range(4)]

        async def store_more(numbers: range) -> None:
            await log.append([Append([stored(number, alert(count=number + 1)) for number in numbers])])
            await until(lambda: len(well.asked) > numbers.start, "a call for what is new")

        await store_more(range(10))
        workers[0].kill()
        await store_more(range(10, 20))
        await stalled(workers[1].pid, 3 * ACK_WAIT)
        await store_more(range(20, 30))
        await stalled(broker.pid, 3 * ACK_WAIT)
        await store_more(range(30, 40))
        broker.kill()
        broker.start()
        await until(lambda: answers(log), "the broker to be back")
        workers[2].kill()
        stack.enter_context(forwarder(broker, all_of_them))
        await store_more(range(40, ALERTS))
        # Each kill, each stall and each end of the broker may have each receiver told one twice.
        await judge(log, all_of_them, deaths=5, refused=6)
        assert len(asks.asked) >= ALERTS + 1


async def answers(log: JetStreamLog) -> bool:
    try:
        await log.info()
    except LogError:
        return False
    return True


async def stalled(pid: int, seconds: float) -> None:
    """Have a process stand still for so long, and go on."""
    os.kill(pid, signal.SIGSTOP)
    try:
        await asyncio.sleep(seconds)
    finally:
        os.kill(pid, signal.SIGCONT)
