"""An edge of its own that forwards an input: ``python -m tests.e2e.http.sender DATA EXCHANGE answer|wait``.

It prints a line once the guards have let the input pass. Then it tells an answer and the end, or waits to be killed.
"""

import asyncio
import sys
from pathlib import Path

from actors.gateway import Client, PassedInput, answer_of
from deploy.processes.broker import GATEWAY
from deploy.processes.broker_access import BrokerChoice, access_of
from deploy.processes.running_set import DataFolder
from events.jetstream import JetStreamLog
from schemas.vocabulary.gateway import AnswerChoice

DEADLINE_MS = 4_000


async def send(data: Path, exchange: str, then: str) -> None:
    log = await JetStreamLog.connect(access_of(BrokerChoice(), DataFolder(data), user=GATEWAY), create=False)
    try:
        async with Client.open(log) as client:
            addressed = client.input(
                "What is the capital of Peru?",
                agent="sender",
                session="forwarded",
                exchange=exchange,
                purpose="forward",
                deadline_after_ms=DEADLINE_MS if then == "wait" else 60_000,
            )
            await client.submit(addressed)
            passed = await client.await_passed(exchange, 60)
            assert isinstance(passed, PassedInput), passed
            print("passed", flush=True)
            if then == "wait":
                await asyncio.sleep(600)
            answer = answer_of([AnswerChoice(text="Lima.", finish_reason="stop")], model="their-model")
            await client.settle(passed, answer)
            end = (await client.await_end(exchange, 60)).event
            print(end.action, end.response, flush=True)
    finally:
        await log.close()


if __name__ == "__main__":
    asyncio.run(send(Path(sys.argv[1]), *sys.argv[2:4]))
