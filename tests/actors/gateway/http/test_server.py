"""The server on a real socket: slow headers, what is no HTTP, and its end."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from actors.gateway.http.server import serve
from tests.each import each

DEADLINE_S = 30.0
UNHURRIED_S = 1.5
"""Time for headers that a client on a busy machine keeps easily."""

PROBE = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


class Held:
    """Answers once it may."""

    def __init__(self) -> None:
        self.came = asyncio.Event()
        self.may_answer = asyncio.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.came.set()
        await self.may_answer.wait()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})


@contextlib.asynccontextmanager
async def serving(
    app: Any, stop: asyncio.Event, header_s: float = DEADLINE_S, stall_s: float = DEADLINE_S
) -> AsyncIterator[int]:
    """Serve ``app`` for the length of a block; gives the port."""
    listener = socket.create_server(("127.0.0.1", 0))
    port: int = listener.getsockname()[1]
    up = asyncio.Event()
    async with asyncio.timeout(2 * DEADLINE_S), asyncio.TaskGroup() as tasks:
        tasks.create_task(serve(app, listener, stop, header_s=header_s, up=up, stall_s=stall_s))
        await up.wait()
        try:
            yield port
        finally:
            stop.set()


@each("sent", [b"", b"GET / HTTP/1.1\r\nHost: 127"])
def test_a_connection_whose_headers_do_not_come_is_closed(sent: bytes) -> None:
    async def main() -> bytes:
        async with serving(Held(), asyncio.Event(), header_s=0.05) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(sent)
            said = await reader.read()
            writer.close()
            await writer.wait_closed()
            return said

    assert asyncio.run(main()) == b""


def test_the_headers_of_a_later_request_have_the_same_time() -> None:
    async def main() -> bytes:
        app = Held()
        app.may_answer.set()
        async with serving(app, asyncio.Event(), header_s=UNHURRIED_S) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(PROBE)
            first = await reader.readuntil(b"ok")
            assert first.startswith(b"HTTP/1.1 200")
            writer.write(b"GET /healthz HTTP/1.1\r\n")
            rest = await reader.read()
            writer.close()
            await writer.wait_closed()
            return rest

    assert asyncio.run(main()) == b""


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"POST /v1/ticks HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\n{", id="part of a body"),
        pytest.param(PROBE + b"GET /healthz HTTP/1.1\r\nHost: 127", id="part of another request"),
    ],
)
def test_a_connection_with_a_response_but_the_rest_of_its_data_outstanding_is_closed(sent: bytes) -> None:
    async def main() -> None:
        app = Held()
        app.may_answer.set()
        async with serving(app, asyncio.Event(), header_s=UNHURRIED_S) as port:
            # A connection that waits for another request is kept longer, though it began to wait earlier.
            kept, keeper = await asyncio.open_connection("127.0.0.1", port)
            keeper.write(PROBE)
            await kept.readuntil(b"ok")
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(sent)
            assert (await reader.read()).startswith(b"HTTP/1.1 200")
            keeper.write(PROBE)
            assert await kept.readuntil(b"ok")
            for each in (writer, keeper):
                each.close()
                await each.wait_closed()

    asyncio.run(main())


def test_a_request_that_takes_long_is_not_hurried_by_the_time_for_headers() -> None:
    async def main() -> int:
        app = Held()
        async with serving(app, asyncio.Event(), header_s=UNHURRIED_S) as port, httpx.AsyncClient() as client:
            asking = asyncio.create_task(client.get(f"http://127.0.0.1:{port}/healthz", timeout=DEADLINE_S))
            await app.came.wait()
            # A connection that says nothing is closed after the time for headers: then it is over for the first too.
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            assert await reader.read() == b""
            writer.close()
            await writer.wait_closed()
            app.may_answer.set()
            return (await asking).status_code

    assert asyncio.run(main()) == 200


def test_what_is_no_http_is_answered_as_such() -> None:
    async def main() -> bytes:
        async with serving(Held(), asyncio.Event()) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"\x16\x03\x01\x02\x00 hello\r\n\r\n")
            said = await reader.read()
            writer.close()
            await writer.wait_closed()
            return said

    assert asyncio.run(main()).startswith(b"HTTP/1.1 400")


def test_a_request_under_way_is_answered_when_the_server_is_to_stop() -> None:
    async def main() -> int:
        app, stop = Held(), asyncio.Event()
        async with serving(app, stop) as port, httpx.AsyncClient() as client:
            asking = asyncio.create_task(client.get(f"http://127.0.0.1:{port}/healthz", timeout=DEADLINE_S))
            await app.came.wait()
            stop.set()
            await refused_at(port)
            app.may_answer.set()
            return (await asking).status_code

    assert asyncio.run(main()) == 200


async def refused_at(port: int) -> None:
    """Wait until nobody takes connections any more."""
    while True:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except ConnectionRefusedError:
            return
        except ConnectionResetError:  # it came in as the door closed
            continue
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
        await asyncio.sleep(0.01)


class Endless:
    """Sends without end, up to so many parts; says once it has been told that the client is gone."""

    def __init__(self, parts: int) -> None:
        self.parts = parts
        self.cut = asyncio.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        leaving = asyncio.create_task(self._left(receive))
        for _ in range(self.parts):
            if self.cut.is_set():
                break
            await send({"type": "http.response.body", "body": b"x" * 65_536, "more_body": True})
            await asyncio.sleep(0)
        else:
            await send({"type": "http.response.body", "body": b""})
        leaving.cancel()

    async def _left(self, receive: Any) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self.cut.set()


def test_a_client_that_reads_nothing_of_what_is_sent_is_cut() -> None:
    async def main() -> None:
        app = Endless(1_000_000)
        async with serving(app, asyncio.Event(), stall_s=0.2) as port:
            _, writer = await asyncio.open_connection("127.0.0.1", port, limit=1_024)
            writer.write(PROBE)
            await app.cut.wait()
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    asyncio.run(main())


def test_a_client_that_reads_slowly_is_sent_all_of_it() -> None:
    async def main() -> int:
        app, had = Endless(200), 0
        async with serving(app, asyncio.Event(), stall_s=5.0) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1_024)
            writer.write(PROBE.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
            while piece := await reader.read(1 << 20):
                had += piece.count(b"x")
            writer.close()
            await writer.wait_closed()
        return had

    assert asyncio.run(main()) >= 200 * 65_536
