"""Where the gateway listens."""

import socket

import pytest

from deploy.config.loading import BadConfiguration
from deploy.processes.listen_address import Address, address_of, listen, url_of
from deploy.processes.supervising.supervisor import ProgramFailed
from tests.each import each


@each(
    ("http", "address"),
    [
        ("127.0.0.1:8642", Address("127.0.0.1", 8642)),
        ("localhost:0", Address("localhost", 0)),
        ("[::1]:80", Address("::1", 80)),
        ("off", None),
        (" OFF ", None),
    ],
)
def test_an_address_is_a_host_and_a_port_or_off(http: str, address: Address | None) -> None:
    assert address_of(http) == address


@each("http", ["", "8642", ":8642", "localhost", "localhost:http", "localhost:65536", "none", f"x:{'1' * 5_000}"])
def test_anything_else_is_refused_with_how_to_write_it(http: str) -> None:
    with pytest.raises(BadConfiguration, match="HOST:PORT"):
        address_of(http)


def test_a_port_that_was_asked_for_and_is_taken_is_an_error_that_names_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ProgramFailed, match=rf"127\.0\.0\.1:{port} is taken"):
            listen(Address("127.0.0.1", port), or_else_any=False)


def test_a_default_port_that_is_taken_is_replaced_by_a_free_one() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with listen(Address("127.0.0.1", port), or_else_any=True) as listener:
            host, other = listener.getsockname()
            assert host == "127.0.0.1"
            assert other != port
            assert url_of(listener) == f"http://127.0.0.1:{other}"


def test_an_address_of_another_machine_is_an_error() -> None:
    with pytest.raises(ProgramFailed, match="cannot listen on"):
        listen(Address("192.0.2.1", 0), or_else_any=True)


def test_a_name_that_leads_nowhere_is_an_error() -> None:
    with pytest.raises(ProgramFailed, match="cannot listen on"):
        listen(Address("nowhere.invalid", 0), or_else_any=True)


def test_a_response_does_not_wait_for_word_of_its_headers() -> None:
    """Whom it accepts sends small pieces at once: asyncio asks for that only where a socket names its protocol."""
    with listen(Address("127.0.0.1", 0), or_else_any=False) as listener:
        listener.setblocking(True)
        with socket.create_connection(listener.getsockname()), listener.accept()[0] as accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
