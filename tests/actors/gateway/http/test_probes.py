"""What a probe is told of a fault: which it is, and no place, which the process's log has."""

import asyncio
import errno
import os
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest
import structlog
from structlog.testing import capture_logs

from actors.gateway.external_events import InvalidField
from actors.gateway.http.check_results import without_locations
from actors.gateway.http.openai.failures import failure_of
from actors.gateway.http.request_errors import NotAccepted
from actors.gateway.http.scopes import NotFound
from events.errors import LedgerDamaged, Misconfigured, NoLeader, Unavailable, UnknownOutcome
from events.jetstream.connection import ApiError
from tests.actors.gateway.http.rig import gateway, guarding
from tests.each import each
from tests.events.simulated_world import in_world
from tests.simulated import SimulatedStream
from tests.simulated.log import SimulatedTail

WHERE = "nats://10.1.2.3:4222,nats://10.1.2.4:4222"


@each(
    ("said", "told"),
    [
        (f"no broker answers at {WHERE} within 2 s; start one", "no broker answers within 2 s; start one"),
        (f"the broker at {WHERE}: it is sealed", "the broker: it is sealed"),
        (f"the broker is {WHERE}", "the broker is"),
        (f"{WHERE} refuses this login", " refuses this login"),
        ("nobody is at broker.internal:4222: start it", "nobody is: start it"),
        ("it listens on 10.0.0.7 and [::1]:4222.", "it listens on and."),
        ("/var/lib/neuraxis/ledger.db: no ledger is here", "ledger.db: no ledger is here"),
        ("the folder ~/.neuraxis/broker is full", "the folder broker is full"),
        ("see .neuraxis/logs/worker-1.log", "see worker-1.log"),
        ("call this by 127.0.0.1 or localhost", "call this by 127.0.0.1 or localhost"),
        ("ask /v1/models or /api/exchanges, 5/7", "ask /v1/models or /api/exchanges, 5/7"),
        ("there is no model 'https://x.example/m': 'a/b'", "there is no model 'https://x.example/m': 'a/b'"),
        ("at 2026-01-02T12:00:00.123Z, 10:30", "at 2026-01-02T12:00:00.123Z, 10:30"),
        ("not served: arbiter 03; see /readyz and/or doctor", "not served: arbiter 03; see /readyz and/or doctor"),
    ],
)
def test_addresses_are_taken_out_of_what_is_said(said: str, told: str) -> None:
    assert without_locations(said) == told


def further_checks(*said: str) -> Mapping[str, Callable[[], Awaitable[str]]]:
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
        told = further_checks(fault, fault, "ok")
        async with guarding(stream), gateway(stream, further_checks=told) as client:
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
        async with gateway(stream, further_checks={"storing": away}) as client:
            found.append((await client.get("/readyz")).text)

    in_world(body)
    assert "10.1.2" not in found[0]


def test_a_cluster_without_a_leader_is_not_called_a_broker_that_is_away() -> None:
    found: list[str] = []

    async def leaderless() -> str:
        raise NoLeader("JetStream system temporarily unavailable")

    async def body(stream: SimulatedStream) -> None:
        async with gateway(stream, further_checks={"stages": leaderless}) as client:
            found.append((await client.get("/readyz")).json()["checks"]["stages"])

    in_world(body)
    assert found == ["the broker's cluster has no leader"]


def test_a_broker_that_refuses_a_question_makes_no_request_too_large() -> None:
    switched_off = {"code": 503, "err_code": 10076, "description": "JetStream not enabled"}
    limited = {"code": 400, "err_code": 10026, "description": "maximum consumers limit reached"}
    found: list[int] = []

    async def body(stream: SimulatedStream) -> None:
        for error in (switched_off, limited):
            async with gateway(stream, records=Away(ApiError("CONSUMER.CREATE.X", error))) as client:
                found.append((await client.get("/api/exchanges")).status_code)

    in_world(body)
    assert found == [503, 503]


def test_a_gateway_that_cannot_read_the_log_any_more_is_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[str] = []

    async def body(stream: SimulatedStream) -> None:
        async with guarding(stream), gateway(stream) as client:
            await asyncio.sleep(1.0)
            for seconds in (0.0, 4.0, 6.0):
                monkeypatch.setattr(SimulatedTail, "cut_off_s", seconds)
                found.append((await client.get("/readyz")).json()["checks"]["judgements"])

    in_world(body)
    assert found[:2] == ["ok", "ok"]
    assert found[2].startswith("the log cannot be read from here any more")


def test_a_check_that_cannot_be_made_hides_no_other() -> None:
    found: list[tuple[int, dict[str, str]]] = []

    async def out_of_descriptors() -> str:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), "/var/lib/neuraxis/store")

    async def out_of_threads() -> str:
        raise RuntimeError("can't start new thread")

    async def wrong() -> str:
        raise KeyError("a bug")

    async def scarce() -> str:
        return "next to no file descriptors left"

    async def body(stream: SimulatedStream) -> None:
        checks = {"storing": out_of_descriptors, "resources": scarce, "ledger": out_of_threads, "stages": wrong}
        async with guarding(stream), gateway(stream, further_checks=checks) as client:
            await asyncio.sleep(1.0)
            answer = await client.get("/readyz")
            found.append((answer.status_code, answer.json()["checks"]))

    in_world(body)
    ((status, told),) = found
    assert status == 503
    assert told["storing"] == "cannot be checked: Too many open files"
    assert told["resources"] == "next to no file descriptors left"
    assert told["ledger"].startswith("cannot be checked: this process has run out of processes or threads")
    assert told["stages"] == "cannot be checked: KeyError"
    assert told["log"] == "ok"


class Away:
    """Records and operations that fail as those of a broker and its ledger do."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    async def exchanges(self, wanted: Any) -> Any:
        raise self._error

    async def judge(self, verdict: Any) -> Any:
        raise self._error


def test_no_error_names_an_address_or_a_folder() -> None:
    verdict = {"exchange": "e", "verdict": "benign", "by": "ann", "why": "x"}
    places = f"stream NEURAXIS at {WHERE}, /var/lib/neuraxis/ledger.db, broker.internal:4222"
    errors = [kind(places) for kind in (Unavailable, LedgerDamaged, Misconfigured, UnknownOutcome, NotFound)]
    errors += [InvalidField("exchange", places), NotAccepted(places), ValueError(places)]
    told: list[str] = []

    async def body(stream: SimulatedStream) -> None:
        for error in errors:
            async with gateway(stream, records=Away(error), operations=Away(error)) as client:
                told.append((await client.get("/api/exchanges")).text)
                told.append((await client.post("/v1/verdicts", json=verdict)).text)

    in_world(body)
    told.append(failure_of(503, places, "unanswered").error.message)
    assert len(told) == 2 * len(errors) + 1
    assert all("message" in each for each in told[:-1])
    assert not [each for each in told for place in ("10.1.2", "/var", "internal", "://") if place in each]
