"""What a probe is told of a fault: which it is, and no place, which the process's log has."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest
import structlog
from structlog.testing import capture_logs

from actors.gateway.http.checks import without_places
from events.errors import Unavailable
from tests.actors.gateway.http.rig import gateway, guarding
from tests.events.simulated_world import in_world
from tests.simulated import SimulatedStream

WHERE = "nats://10.1.2.3:4222,nats://10.1.2.4:4222"


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (f"no broker answers at {WHERE} within 2 s; start one", "no broker answers within 2 s; start one"),
        (f"the broker at {WHERE}: it is sealed", "the broker: it is sealed"),
        (f"the broker is {WHERE}", "the broker is"),
        ("not served: arbiter 03; see /readyz and/or doctor", "not served: arbiter 03; see /readyz and/or doctor"),
    ],
)
def test_addresses_are_taken_out_of_what_is_said(said: str, told: str) -> None:
    assert without_places(said) == told


def looks(*said: str) -> Mapping[str, Callable[[], Awaitable[str]]]:
    """A look that says one thing after another."""
    left = list(said)

    async def look() -> str:
        return left.pop(0)

    return {"storing": look}


def test_readiness_names_the_fault_and_the_log_the_place_once() -> None:
    found: list[str] = []
    lines: list[Any] = []
    fault = f"the broker at {WHERE} stores nothing"
    structlog.reset_defaults()

    async def body(stream: SimulatedStream) -> None:
        told = looks(fault, fault, "ok")
        async with guarding(stream), gateway(stream, looks=told) as client:
            with capture_logs() as captured:
                for _ in range(3):
                    await asyncio.sleep(1.0)
                    answer = await client.get("/readyz")
                    found.append(f"{answer.status_code} {answer.json()['checks']['storing']}")
            lines.extend(captured)

    in_world(body)
    assert found == ["503 the broker stores nothing", "503 the broker stores nothing", "200 ok"]
    told = [(line["event"], line.get("detail")) for line in lines if line.get("check") == "storing"]
    assert told == [("not_ready", fault), ("ready_again", None)]


def test_a_look_that_fails_names_no_place_either() -> None:
    found: list[str] = []

    async def away() -> str:
        raise Unavailable(f"no broker answers at {WHERE}")

    async def body(stream: SimulatedStream) -> None:
        async with gateway(stream, looks={"storing": away}) as client:
            found.append((await client.get("/readyz")).text)

    in_world(body)
    assert "10.1.2" not in found[0]
