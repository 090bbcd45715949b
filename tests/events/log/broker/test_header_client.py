"""Headers as our client writes and reads them, beside nats-py itself."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nats.aio.client import Client
from nats.aio.msg import Msg

from events.errors import Unavailable
from events.jetstream.connection import Access, Connection
from events.jetstream.header_client import HeaderClient, read_headers, write_headers
from tests.broker import Broker
from tests.each import each

names = st.from_regex(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,20}", fullmatch=True)
printable = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=40)
plain = st.dictionaries(names, printable, min_size=1, max_size=20)
anything = st.dictionaries(st.text(max_size=5), st.text(max_size=20), max_size=6)


@given(plain)
def test_what_is_written_is_read_as_nats_py_reads_it(headers: dict[str, str]) -> None:
    block = write_headers(headers)
    assert block is not None
    assert block.startswith(b"NATS/1.0\r\n")
    assert block.endswith(b"\r\n\r\n")
    expected = {name: value.strip() for name, value in headers.items()}
    assert read_headers(block) == expected
    assert asyncio.run(Client()._process_headers(block)) in (expected, expected or None)


@given(anything)
def test_no_header_breaks_out_of_its_line(headers: dict[str, str]) -> None:
    block = write_headers(headers)
    if block is not None:
        assert set(read_headers(block)) == set(headers)
        assert len(block.split(b"\r\n")) == len(headers) + 3


@each("headers", [{"name": "a\r\nforged: b"}, {"name": "a\nb"}, {"na me": "a"}, {"na:me": "a"}, {"": "a"}, {"é": "a"}])
def test_what_could_break_out_is_left_to_the_library(headers: dict[str, str]) -> None:
    assert write_headers(headers) is None


@given(st.binary(max_size=200))
def test_any_block_of_headers_can_be_read(junk: bytes) -> None:
    found = asyncio.run(HeaderClient()._process_headers(b"NATS/1.0\r\n" + junk + b"\r\n\r\n"))
    assert found is None or all(isinstance(value, str) for value in found.values())


def test_nats_py_still_calls_what_is_overridden() -> None:
    """Otherwise everything works, and costs as much as it did."""
    assert all(hasattr(Client, name) for name in ("_send_publish", "_process_headers", "_process_msg"))


def test_headers_and_statuses_pass_through_a_server_unchanged(broker: Broker) -> None:
    headers = {"ce-id": "a%20b", "Nats-Msg-Id": "x", "empty": "", "colons": "a:b: c", "last": "~"}

    async def main() -> None:
        connection = await Connection.open(Access(servers=broker.url))
        arrived: asyncio.Queue[Msg] = asyncio.Queue()
        await connection.nc.subscribe("here", cb=arrived.put)
        await connection.publish("here", b"body", headers=headers)
        await connection.publish("here", b"bare")
        async with asyncio.timeout(20):
            first, second = await arrived.get(), await arrived.get()
        assert (first.headers, first.data) == (headers, b"body")
        assert (second.headers, second.data) == (None, b"bare")
        with pytest.raises(Unavailable, match="nobody serves"):
            await connection.request("nobody.listens")
        await connection.close()

    asyncio.run(main())


def test_a_function_that_listens_is_given_all_in_order_and_its_error_costs_the_next_nothing(broker: Broker) -> None:
    heard, count = list[bytes](), 2_000

    async def main() -> None:
        connection = await Connection.open(Access(servers=broker.url))
        done = asyncio.Event()

        def take(msg: Msg) -> None:
            heard.append(msg.data)
            if msg.data == b"7":
                raise ValueError("what it was given")
            if len(heard) == count:
                done.set()

        await connection.nc.listen("here", take)
        for number in range(count):
            await connection.publish("here", b"%d" % number, headers={"number": str(number)})
        async with asyncio.timeout(20):
            await done.wait()
        await connection.close()

    asyncio.run(main())
    assert heard == [b"%d" % number for number in range(count)]


def test_a_message_larger_than_the_sockets_buffer_arrives_whole(broker: Broker) -> None:
    bodies = [bytes([65 + place]) * 500_000 for place in range(8)]

    async def main() -> list[bytes]:
        connection = await Connection.open(Access(servers=broker.url))
        heard: asyncio.Queue[bytes] = asyncio.Queue()
        await connection.nc.listen("here", lambda msg: heard.put_nowait(msg.data))
        for body in bodies:
            await connection.publish("here", body, headers={"large": "yes"})
        async with asyncio.timeout(20):
            found = [await heard.get() for _ in bodies]
        await connection.close()
        return found

    assert asyncio.run(main()) == bodies
