"""The same four hops in FastStream with JetStream: the peer's process.

Run by ``bench.hops`` as ``python -m bench.hops_faststream URL pull|push``; prints ``ready`` and works until its standard input
ends. Each subscriber has a durable consumer, publishes the next event with the server's acknowledgement, then acknowledges.
"""

import asyncio
import sys
from typing import Any

from faststream.nats import JStream, NatsBroker, PullSub

STREAM = "PEER"
SUBJECTS = ("peer.asked", "peer.first", "peer.second", "peer.third", "peer.fourth")
PULL = 100
"""Messages a pull subscriber fetches and handles at once."""


def _hop(broker: NatsBroker, stream: JStream, consumed: str, published: str, how: str) -> None:
    durable = f"{how}-{published.replace('.', '-')}"
    if how == "pull":
        subscriber = broker.subscriber(consumed, stream=stream, durable=durable, pull_sub=PullSub(batch_size=PULL))
    else:
        subscriber = broker.subscriber(consumed, stream=stream, durable=durable, max_workers=16)

    @subscriber
    @broker.publisher(published, stream=STREAM)
    async def handle(event: dict[str, Any]) -> dict[str, Any]:
        return {"topic": published, "number": event["number"], "text": event["text"]}


async def _work(url: str, how: str) -> None:
    # Without pydantic, access log and types: FastStream at its fastest.
    broker = NatsBroker(url, apply_types=False, logger=None)
    stream = JStream(STREAM, subjects=["peer.>"], declare=True)
    for consumed, published in zip(SUBJECTS, SUBJECTS[1:], strict=False):
        _hop(broker, stream, consumed, published, how)
    async with broker:
        await broker.start()
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(_work(sys.argv[1], sys.argv[2]))
