"""The metrics of a worker process over HTTP, and readers that hold on."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from prometheus_client import CollectorRegistry, Counter

from actors.runtime.measurements import EDGES_S, Histogram, Measurements
from deploy.processes.listen_address import Address
from deploy.telemetry.metrics_server import MOST_READERS, serving_metrics
from deploy.telemetry.process_metrics import ProcessMetrics, outcome_of
from tests.each import each

ANY = Address("127.0.0.1", 0)


def registry() -> CollectorRegistry:
    found = CollectorRegistry()
    Counter("told", "Told.", registry=found).inc(3)
    return found


def served(address: Address | None, use: Callable[[str], Any]) -> Any:
    """Serve, and use what is served in another thread."""

    async def body() -> Any:
        async with serving_metrics(address, registry(), "deciders") as where:
            return await asyncio.to_thread(use, where.address if where else "")

    return asyncio.run(body())


def scraped(address: str) -> str:
    answer = httpx.get(f"http://{address}/metrics", trust_env=False, timeout=30)
    assert answer.headers["content-type"].startswith("text/plain")
    return answer.text


def test_metrics_are_told_and_the_socket_is_gone_afterwards() -> None:
    def use(address: str) -> str:
        assert "told_total 3.0" in scraped(address)
        return address

    host, port = served(ANY, use).split(":")
    with contextlib.suppress(OSError), socket.create_connection((host, int(port)), timeout=5):
        raise AssertionError("it still listens")


def test_a_port_that_is_taken_is_replaced_and_an_address_of_another_machine_costs_the_metrics_alone() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        other = served(Address("127.0.0.1", port), lambda address: (scraped(address), address)[1])
        assert other != f"127.0.0.1:{port}"
    assert served(Address("192.0.2.1", 9464), str) == ""
    assert served(None, str) == ""


def test_readers_that_say_nothing_leave_room_and_do_not_delay_the_end() -> None:
    def use(address: str) -> None:
        host, port = address.split(":")
        with contextlib.ExitStack() as stack:
            for _ in range(MOST_READERS - 1):
                stack.enter_context(socket.create_connection((host, int(port))))
            assert "told_total" in scraped(address)

    served(ANY, use)


def test_readers_for_whom_no_thread_was_left_hold_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    class NoThread(threading.Thread):
        def start(self) -> None:
            raise RuntimeError("can't start new thread")

    def use(address: str) -> None:
        host, port = address.split(":")
        with monkeypatch.context() as short:
            short.setattr(threading, "Thread", NoThread)
            for _ in range(MOST_READERS):
                with socket.create_connection((host, int(port)), timeout=30) as peer, contextlib.suppress(OSError):
                    assert peer.recv(1) == b""
        assert "told_total" in scraped(address)

    served(ANY, use)


NONSENSE = (b"\r\n\r\n", b"POST /metrics HTTP/1.1\r\n\r\n", b"\xff\xfe\x00" * 400 + b"\r\n", b"GET " + b"a" * 70_000)


@each("sent", NONSENSE)
def test_nonsense_does_not_end_it(sent: bytes) -> None:
    def use(address: str) -> None:
        host, port = address.split(":")
        with contextlib.suppress(OSError), socket.create_connection((host, int(port)), timeout=30) as peer:
            peer.sendall(sent)
            peer.shutdown(socket.SHUT_WR)
            while peer.recv(4096):
                pass
        assert "told_total" in scraped(address)

    served(ANY, use)


def test_a_duration_of_the_budget_is_within_it_and_a_longer_one_is_not() -> None:
    class Settings:
        latency_budget_ms = 20.0

    measured = Measurements(["reflex", "router"], {"reflex": Settings(), "router": object(), "elsewhere": Settings()})
    reflex, router = measured.by_actor["reflex"], measured.by_actor["router"]
    assert reflex.budget_s == 0.02
    assert reflex.budget_s in reflex.decisions.edges_s == router.decisions.edges_s
    for duration_ns in (20_000_000, 20_000_001, 9_000_000_000):
        reflex.decisions.observe(duration_ns)
    assert reflex.decisions.above(0.02) == 2
    assert sum(reflex.decisions.counts) == 3
    assert reflex.decisions.counts[-1] == 1


def test_buckets_are_those_of_a_histogram_of_prometheus() -> None:
    histogram = Histogram()
    assert histogram.edges_s == EDGES_S
    histogram.observe(0)
    histogram.observe(100_000)
    assert histogram.counts[0] == 2


def test_a_process_without_actors_tells_of_itself() -> None:
    names = {family.name for family in ProcessMetrics().registry().collect()}
    assert {"neuraxis_build_info", "neuraxis_trace_spans", "process_resident_memory_bytes"} <= names
    assert "neuraxis_decisions" not in names


@each(
    ("topic", "outcome"),
    [
        ("", "none"),
        ("forged_id.reflex.blocked", "blocked"),
        ("forged_id.response.emitted", "emitted"),
        ("forged_id.self_review.triggered", "triggered"),
        ("forged_id.resolved", "resolved"),
    ],
)
def test_an_outcome_is_an_event_without_its_owner(topic: str, outcome: str) -> None:
    assert outcome_of(topic) == outcome
