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
from events.log import Append, Record
from schemas.envelope import Envelope, encode_headers
from schemas.event import encode_event, topic_of
from schemas.subjects import stored_subject
from schemas.vocabulary.responder import ResponseEmitted
from tests.actors.gateway.asking import asking
from tests.broker import Broker

DEADLINE_S = 0.3
STALL_S = 5 * DEADLINE_S


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


def end_of(exchange: str, url: str) -> None:
    """End an exchange as a responder does, in a thread with an event loop and a connection of its own."""

    async def end() -> None:
        log = await JetStreamLog.connect(url)
        event = ResponseEmitted(
            stage="DELIBERATIVE", action="EXECUTED", reason="RESPOND", mode="RESPOND", first_mode=None,
            response="Lima.", backend="composer",
        )  # fmt: skip
        envelope = Envelope(
            id=f"end of {exchange}", topic=topic_of(event), source="neuraxis/test", time="2030-01-01T00:00:00Z",
            agent="ann", session="morning", exchange=exchange,
        )  # fmt: skip
        subject = stored_subject(envelope.topic, log.partitions.agent_token("ann"), "00")
        await log.append([Append([Record(subject, encode_headers(envelope), encode_event(event))])])
        await log.close()

    time.sleep(DEADLINE_S / 2)
    asyncio.run(end())


def test_the_end_of_an_exchange_that_was_stored_meanwhile_counts(broker: Broker) -> None:
    async def main() -> str:
        log = await JetStreamLog.connect(broker.url)
        try:
            async with Client.open(log) as client:
                wrapped = asking()
                await client.submit(wrapped, 30)
                ending = threading.Thread(target=end_of, args=(wrapped.exchange, broker.url))
                ending.start()
                found, _ = await asyncio.gather(client.await_end(wrapped.exchange, DEADLINE_S), stand_still())
                ending.join()
                return found.event.response
        finally:
            await log.close()

    assert asyncio.run(main()) == "Lima."


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
