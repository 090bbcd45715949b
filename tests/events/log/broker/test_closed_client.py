"""A connection that is closed or given up while its broker is away: nothing of it goes on."""

import asyncio
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from deploy.processes.inbox import listening_inbox
from deploy.processes.query_services import serving_queries
from events.errors import Unavailable
from events.jetstream import KeyValueMembership
from events.jetstream.connection import Access, Connection
from events.jetstream.header_client import HeaderClient
from events.jetstream.reading.stream_reader import StreamReader
from tests.actors.runtime.waiting import until
from tests.broker import USERS, Broker, close_for_good


def test_a_client_that_is_closed_the_moment_a_server_refuses_it_tries_no_more(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A refusal that meets the cancellation takes its place: without a second look it would try for ever."""
    refused, trying = asyncio.Event(), asyncio.Event()

    async def open_connection(**_: object) -> None:
        trying.set()
        await refused.wait()
        raise ConnectionRefusedError

    async def main() -> set[asyncio.Task[object]]:
        connection = await Connection.open(Access(servers=broker.url))
        others = asyncio.all_tasks()
        monkeypatch.setattr(asyncio, "open_connection", open_connection)
        broker.kill()
        async with asyncio.timeout(10):
            await trying.wait()
        reconnecting = asyncio.all_tasks() - others
        assert reconnecting
        refused.set()
        await asyncio.sleep(0)  # the attempt is refused, and who waits for it has not heard
        await connection.close()
        _, left = await asyncio.wait(reconnecting, timeout=20.0)
        for task in left:  # or this test would not end either
            monkeypatch.undo()
            while not task.done():
                task.cancel()
                await asyncio.sleep(0.01)
        return left

    assert asyncio.run(main()) == set()


@pytest.mark.parametrize("by", ["its caller", "its deadline"])
def test_a_client_whose_time_is_up_the_moment_a_server_refuses_it_tries_no_more(
    by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused, trying = asyncio.Event(), asyncio.Event()

    async def open_connection(**_: object) -> None:
        trying.set()
        await refused.wait()
        raise ConnectionRefusedError

    async def main() -> bool:
        monkeypatch.setattr(asyncio, "open_connection", open_connection)
        limit = asyncio.timeout(None)

        async def opened() -> None:
            async with limit:
                await HeaderClient().connect("nats://127.0.0.1:1", reconnect_time_wait=0.01, max_reconnect_attempts=-1)

        opening = asyncio.create_task(opened())
        async with asyncio.timeout(10):
            await trying.wait()
        refused.set()
        await asyncio.sleep(0)  # the attempt is refused, and who waits for it has not heard
        if by == "its caller":
            opening.cancel()
        else:
            limit.reschedule(0)  # long over
            await asyncio.sleep(0)
        done, _ = await asyncio.wait({opening}, timeout=2.0)
        while not opening.done():  # or this test would not end either
            opening.cancel()
            await asyncio.sleep(0)
        assert opening.cancelled() or isinstance(opening.exception(), TimeoutError)
        return bool(done)

    assert asyncio.run(main())


def test_whoever_subscribes_with_a_closed_connection_is_told_so_by_an_error_of_the_log(broker: Broker) -> None:
    """A worker that looked for the other members while it ended was ended by the client library's own error."""

    async def main() -> None:
        connection = await Connection.open(Access(servers=broker.url))
        members = await KeyValueMembership.over(connection)
        async with listening_inbox(connection, lambda body: None):
            await connection.close()
        with pytest.raises(Unavailable):
            await members.members()
        with pytest.raises(Unavailable):
            async with listening_inbox(connection, lambda body: None):
                pass

    asyncio.run(main())


def test_a_call_that_cannot_hear_its_answers_is_not_waited_for_ever_after(broker: Broker) -> None:
    async def main() -> None:
        connection = await Connection.open(Access(servers=broker.url))
        await connection.close()
        with pytest.raises(Unavailable, match="nothing can be heard"):
            async for _ in connection.gather("$JS.API.DIRECT.GET.NEURAXIS", b"{}"):
                pass
        assert connection._calls == {}
        assert connection._subjects == {}

    asyncio.run(main())


def test_whoever_works_with_a_login_that_the_broker_no_longer_knows_ends_by_that_reason(tmp_path: Path) -> None:
    """The broker closes the connection for good; a process ended as by a bug of ours, or without a word why."""

    async def main(broker: Broker) -> None:
        connection = await Connection.open(Access(servers=broker.url, user="a", password="secret"))
        with capture_logs() as lines:
            async with serving_queries(connection, tmp_path / "ledger.db", None):
                await close_for_good(broker, lambda: connection.closed)
                await until(lambda: any(e["event"] == "broker_closed_connection" for e in lines), "that to be logged")
        reader = StreamReader(connection, "NEURAXIS", ["log.>"], 0, "a test")
        with pytest.raises(Unavailable, match="authorization failed; give a login that it knows"):
            await reader.next()

    with Broker(tmp_path, more=USERS.format("secret")) as broker:
        asyncio.run(main(broker))
