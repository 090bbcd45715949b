"""Four hops in FastStream with JetStream, the peer of ``bench.system.hops``: the measured process.

Run by ``bench.system.hops`` as ``python -m bench.harness.hops_faststream URL pull|push``; prints ``ready`` and works
until its standard input ends. Each subscriber has a consumer of its own, publishes the next event with the server's
acknowledgement, and then acknowledges what it consumed.
"""

import asyncio
import sys
from itertools import pairwise
from typing import Any

from faststream.nats import JStream, NatsBroker, PullSub

from bench.harness.child import answer_until_input_ends

STREAM = "PEER"
"""Beginning of the stream's name; the kind of subscriber follows."""

SUBJECTS = ("asked", "first", "second", "third", "fourth")
"""The subjects of the hops; the kind of subscriber (``pull`` or ``push``) is put before each."""

AT_ONCE = 100
"""Messages that a subscriber handles at once."""


def _hop(broker: NatsBroker, stream: JStream, consumed: str, published: str, kind: str) -> None:
    @broker.publisher(published, stream=stream.name)  # type: ignore[untyped-decorator, unused-ignore]
    async def handle(event: dict[str, Any]) -> dict[str, Any]:
        return {"topic": published, "number": event["number"], "text": event["text"]}

    name = published.replace(".", "-")
    if kind == "pull":
        broker.subscriber(consumed, stream=stream, durable=name, pull_sub=PullSub(batch_size=AT_ONCE))(handle)
    else:
        broker.subscriber(consumed, name, stream=stream, max_workers=AT_ONCE)(handle)


async def _work(url: str, kind: str) -> None:
    # Without pydantic, access log and types: FastStream at its fastest.
    broker = NatsBroker(url, apply_types=False, logger=None)
    stream = JStream(f"{STREAM}-{kind}", subjects=[f"{kind}.>"], declare=True)
    subjects = [f"{kind}.{subject}" for subject in SUBJECTS]
    for consumed, published in pairwise(subjects):
        _hop(broker, stream, consumed, published, kind)
    async with broker:
        await broker.start()
        await answer_until_input_ends()


if __name__ == "__main__":
    asyncio.run(_work(sys.argv[1], sys.argv[2]))
