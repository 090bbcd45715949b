"""An echo's worker as a process of its own, to be killed: ``python -m tests.actors.runtime.effectors.echo_worker URL
FILE HOW``.

Its effect is a line in FILE, the outside world. HOW is when it dies by its own SIGKILL: ``after_effect``, or
``after_append`` (before it acknowledges); with ``waits`` it lives, and after its effect waits until its input ends.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from actors.runtime.effectors.effector_worker import EffectorWorker
from events.jetstream import JetStreamLog
from events.jetstream.reading.durable_pull import PulledMessage
from schemas.actor import Emission, Message
from schemas.event import Event
from tests.actors.runtime.effectors.echo import echo, effector, enter_vocabulary

ACK_WAIT = 1.0


def leave_trace(file: Path, message: Message) -> None:
    """Have the effect."""
    with file.open("a") as outside:
        outside.write(f"{message.id}\n")


async def main(url: str, file: Path, how: str) -> None:
    """Work until killed."""

    async def perform(message: Message) -> Sequence[Event | Emission]:
        leave_trace(file, message)
        if how == "after_effect":
            os.kill(os.getpid(), signal.SIGKILL)
        if how == "waits":
            await asyncio.to_thread(sys.stdin.read)
        return await echo(message)

    class Mortal(PulledMessage):
        async def acknowledge(self) -> None:
            os.kill(os.getpid(), signal.SIGKILL)

    if how == "after_append":
        PulledMessage.acknowledge = Mortal.acknowledge  # type: ignore[method-assign]  # die where the shell would acknowledge
    enter_vocabulary()
    log = await JetStreamLog.connect(url)
    worker = EffectorWorker(log, effector(perform), name=f"child-{os.getpid()}", ack_wait=ACK_WAIT)
    await worker.run(asyncio.Event())


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), sys.argv[3]))
