"""The micro services of worker processes, asked over a real broker by the embedded set's own users."""

import asyncio
import json
import time
from contextlib import AsyncExitStack
from typing import Any

from actors.gateway import Client, new_input
from deploy.processes.broker import OPERATOR
from deploy.processes.broker_access import BrokerChoice, access_of
from deploy.processes.running_set import DataFolder
from events.jetstream import JetStreamLog
from tests.e2e.live import Live

DEADLINE = 60.0


async def _ask(log: JetStreamLog, subject: str, question: bytes = b"") -> tuple[dict[str, str], Any]:
    msg = await log.connection.nc.request(subject, question, timeout=DEADLINE)
    return msg.headers or {}, json.loads(msg.data) if msg.data else None


def test_queries_tell_how_an_exchange_ended_and_who_leads_what(live: Live) -> None:
    async def ask() -> None:
        access = access_of(BrokerChoice(), DataFolder(live.data), user=OPERATOR, name="test")
        async with AsyncExitStack() as stack:
            log = await JetStreamLog.connect(access, create=False)
            stack.push_async_callback(log.close)
            edge = await stack.enter_async_context(Client.open(log))
            addressed = new_input("Hello", agent="a", session="s", partitions=log.partitions, now_ns=time.time_ns())
            await edge.submit(addressed)
            answered = await edge.await_end(addressed.exchange, DEADLINE)
            question = json.dumps({"exchange": addressed.exchange}).encode()
            deadline = time.monotonic() + DEADLINE
            headers, found = await _ask(log, "forged_id.query.ledger.exchange", question)
            while (headers or not found["ended"]) and time.monotonic() < deadline:  # the ledger follows the stream
                headers, found = await _ask(log, "forged_id.query.ledger.exchange", question)
            assert found["ended"]["response"] == answered.event.response
            headers, _ = await _ask(log, "forged_id.query.ledger.exchange", b'{"exchange": "none"}')
            assert headers["Nats-Service-Error-Code"] == "404"
            headers, _ = await _ask(log, "forged_id.query.ledger.exchange", b"\xff[")
            assert headers["Nats-Service-Error-Code"] == "400"
            headers, _ = await _ask(log, "forged_id.query.ledger.exchange", b'{"exhange": "none"}')
            assert "there is no field 'exhange': did you mean 'exchange'?" in headers["Nats-Service-Error"]
            headers, _ = await _ask(log, "forged_id.query.router.partitions", b'{"partition": "00"}')
            assert headers["Nats-Service-Error-Code"] == "400"
            headers, _ = await _ask(log, "forged_id.query.ledger.health", b'{"ledger": "x"}')
            assert headers["Nats-Service-Error-Code"] == "400"
            _, partitions = await _ask(log, "forged_id.query.router.partitions")
            assert [one["role"] for one in partitions] == ["leading"] * 16
            _, info = await _ask(log, "$SRV.INFO.neuraxis-ledger")
            assert info["endpoints"][0]["subject"] == "forged_id.query.ledger.exchange"

    asyncio.run(ask())
