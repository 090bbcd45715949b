"""What operators ask over HTTP: a few at a time, since each has a connection to the broker of its own."""

import asyncio
from typing import Any

import pytest

from actors.gateway.http.request_errors import NotAccepted
from deploy.processes.gateway import operations
from deploy.processes.gateway.operations import AT_ONCE, BrokerOperations
from events.jetstream import Access, JetStreamLog


def test_of_many_requests_a_few_are_carried_out_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    open_now, most = 0, 0

    async def connect(*_: Any, **__: Any) -> JetStreamLog:
        nonlocal open_now, most
        open_now += 1
        most = max(most, open_now)
        try:
            await asyncio.Event().wait()  # a broker that takes connections, and is silent
        finally:
            open_now -= 1
        raise AssertionError

    async def body() -> list[BaseException | object]:
        asked = BrokerOperations(Access(servers="nats://127.0.0.1:1"), "NEURAXIS", wait_s=0.3)
        crowd = (asked.allowances("default") for _ in range(3 * AT_ONCE))
        return list(await asyncio.gather(*crowd, return_exceptions=True))

    monkeypatch.setattr(operations.JetStreamLog, "connect", connect)
    found = asyncio.run(body())
    assert all(isinstance(each, NotAccepted) for each in found)
    assert (most, open_now) == (AT_ONCE, 0)
    waited = [each for each in found if "behind others: nothing was done" in str(each)]
    assert len(waited) >= AT_ONCE, "who had no turn is told that nothing was done"
