"""A call ends by its timeout whatever the server sends meanwhile, with an event loop and without."""

import asyncio
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import neuraxis
from neuraxis import AsyncClient, Client
from tests.each import each

VERDICT = {
    "exchange": "e1", "allowed": True, "stage": "ARBITER", "action": "PASSED", "reason": "check",
    "sentence": "Let pass.", "numbers": {},
}  # fmt: skip
BODY = json.dumps({"results": [VERDICT]}).encode()
WHOLE = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (len(BODY), BODY)
PIECES = 400
"""Pieces of a slow answer, 20 ms apart: it would be complete after eight seconds."""

SLOW = {
    "headers": [b"HTTP/1.1 200 OK\r\n", *[b"x-more: 1\r\n"] * PIECES, WHOLE.partition(b"\r\n")[2]],
    "one header": [b"HTTP/1.1 200 OK\r\nx-more: ", *[b"a"] * PIECES, b"\r\n" + WHOLE.partition(b"\r\n")[2]],
    "a body": [
        WHOLE.removesuffix(BODY).replace(b"%d" % len(BODY), b"%d" % (len(BODY) + PIECES)),
        *[b" "] * PIECES,
        BODY,
    ],
    "chunks": [b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1;", *[b"a"] * PIECES, b"\r\n{\r\n0\r\n\r\n"],
}


@contextmanager
def serving(*answers: list[bytes]) -> Iterator[str]:
    """Serve one connection with an answer for each request, in pieces with a pause behind each.

    The last one must not come to its end within the block.
    """
    stopping, complete = threading.Event(), threading.Event()

    def answer(listener: socket.socket) -> None:
        with listener, listener.accept()[0] as connection:
            for pieces in answers:
                if not connection.recv(65_536):
                    return
                for number, piece in enumerate(pieces, start=1):
                    if 1 < number == len(pieces):
                        complete.set()
                    try:
                        connection.sendall(piece)
                    except OSError:
                        return
                    if stopping.wait(0.02 if len(pieces) > 1 else 0):
                        return
            stopping.wait(30)

    listener = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=answer, args=(listener,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        assert not complete.is_set(), "the call waited for the whole answer"
    finally:
        stopping.set()
        thread.join(30)


@each("slow", SLOW)
def test_a_server_that_sends_a_byte_now_and_then_is_not_waited_for_longer(slow: str) -> None:
    with (
        serving(SLOW[slow]) as url,
        Client(url, timeout=0.5) as client,
        pytest.raises(neuraxis.NotReachable) as caught,
    ):
        client.check("hello")
    assert caught.value.code == "timeout"


def test_the_same_holds_for_a_connection_that_was_used_before() -> None:
    with serving([WHOLE], SLOW["headers"]) as url, Client(url, timeout=3) as client:
        assert client.check("hello").allowed
        with pytest.raises(neuraxis.NotReachable):
            client.check("hello")


def test_and_for_the_client_of_asyncio() -> None:
    async def check(url: str) -> None:
        async with AsyncClient(url, timeout=0.5) as client:
            await client.check("hello")

    with serving(SLOW["headers"]) as url, pytest.raises(neuraxis.NotReachable):
        asyncio.run(check(url))


SILENT = "server.example"
"""A name that the name server of these tests does not tell in time."""


@pytest.fixture
def silent_names(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Let look-ups of a name take as long as with a name server that does not answer, which nothing can end."""
    over, look_up = threading.Event(), socket.getaddrinfo

    def slow(host: object, *arguments: object, **options: object) -> object:
        if host in (SILENT, SILENT.encode()):
            over.wait(30)
            raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
        return look_up(host, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    yield over
    over.set()


def test_a_name_server_that_does_not_answer_is_not_waited_for_longer(silent_names: threading.Event) -> None:
    begun = time.monotonic()
    with (
        Client(f"http://{SILENT}:8642", timeout=0.5) as client,
        pytest.raises(neuraxis.NotReachable) as caught,
    ):
        client.check("hello")
    assert caught.value.code == "timeout"
    assert time.monotonic() - begun < 15


def test_nor_by_the_end_of_a_program_with_an_event_loop(silent_names: threading.Event) -> None:
    async def check() -> None:
        async with AsyncClient(f"http://{SILENT}:8642", timeout=0.5) as client:
            await client.check("hello")

    begun = time.monotonic()
    with pytest.raises(neuraxis.NotReachable):
        asyncio.run(check())
    assert time.monotonic() - begun < 15


def test_calls_for_one_name_share_its_look_up(silent_names: threading.Event) -> None:
    async def check() -> int:
        async with AsyncClient(f"http://{SILENT}:8642", timeout=5) as client:
            calls = [asyncio.ensure_future(client.check("hello")) for _ in range(20)]
            await asyncio.sleep(0.5)
            count = sum(thread.name == "neuraxis-look-up" for thread in threading.enumerate())
            silent_names.set()
            failed = await asyncio.gather(*calls, return_exceptions=True)
            assert {type(each) for each in failed} == {neuraxis.NotReachable}
            return count

    assert asyncio.run(check()) == 1


def test_all_addresses_of_a_server_share_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three addresses, each of which takes a connection in its queue and never answers the first packet of TLS."""
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (f"127.0.0.{number}", 443)) for number in (1, 2, 3)]
    given: list[float] = []

    def connect(address: tuple[str, int], timeout: float, source_address: object = None) -> socket.socket:
        given.append(timeout)
        raise TimeoutError("timed out")

    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    monkeypatch.setattr(socket, "create_connection", connect)
    with Client("http://server.example:8642", timeout=3, retries=0) as client, pytest.raises(neuraxis.NotReachable):
        client.check("hello")
    assert given == [pytest.approx(1.0, abs=0.3)], "create_connection gives each address all of the time it is given"


def test_a_name_without_an_address_is_told_at_once() -> None:
    with (
        Client("http://no-such-host.invalid:8642", timeout=5, retries=0) as client,
        pytest.raises(neuraxis.NotReachable) as caught,
    ):
        client.check("hello")
    assert caught.value.code == "no_connection"
