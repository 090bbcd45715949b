"""A process that stood still past a deadline reads what has come meanwhile before an answer counts as missing."""

import asyncio
import socket
import threading
import time

import pytest

from actors.gateway import Client
from actors.gateway.answer_wait import NoEnd, await_answer
from actors.gateway.wait_deadlines import AFTER_STALL_S, WaitDeadlines, deadline_within
from events.jetstream import JetStreamLog
from tests.actors.gateway.asking import asking
from tests.broker import Broker

DEADLINE_S = 0.3
STALL_S = 4 * DEADLINE_S


async def stand_still() -> None:
    """Let the process stand still once what was asked is on its way, as one does that is stopped in a shell."""
    await asyncio.sleep(0.01)
    time.sleep(STALL_S)  # noqa: ASYNC251 - nothing of this process runs meanwhile


async def awaited(ours: socket.socket) -> bytes:
    """Wait for a line of a socket as for an answer, beside a stall."""
    reader, writer = await asyncio.open_connection(sock=ours)
    try:
        answer = await_answer(reader.readline(), "exchange e1", WaitDeadlines(), deadline_within(DEADLINE_S))
        found, _ = await asyncio.gather(answer, stand_still())
        return found
    finally:
        writer.close()


def test_an_end_that_came_while_the_process_stood_still_counts() -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        ending = threading.Timer(STALL_S / 2, theirs.sendall, (b"ended\n",))
        ending.start()
        assert asyncio.run(awaited(ours)) == b"ended\n"
        ending.join()


def test_one_that_has_not_come_is_missed_soon_after() -> None:
    ours, theirs = socket.socketpair()
    begun = time.monotonic()
    with theirs, pytest.raises(NoEnd, match="has no end after"):
        asyncio.run(awaited(ours))
    assert time.monotonic() - begun < 10 * (STALL_S + AFTER_STALL_S)


def test_so_does_the_brokers_word_that_an_input_is_stored(broker: Broker) -> None:
    async def main() -> int:
        log = await JetStreamLog.connect(broker.url)
        try:
            async with Client.open(log) as client:
                seq, _ = await asyncio.gather(client.submit(asking(), DEADLINE_S), stand_still())
                return seq
        finally:
            await log.close()

    assert asyncio.run(main()) == 1
