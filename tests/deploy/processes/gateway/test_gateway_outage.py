"""A gateway and its broker: before it is reached, when it goes, and when it stands still. Nothing hangs."""

import asyncio
import contextlib
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from events.errors import LogError
from events.jetstream import JetStreamLog
from neuraxis_server.probe import why_not
from tests.broker import Broker
from tests.deploy.health.test_readiness import projecting
from tests.deploy.waiting import until
from tests.e2e.live import command, environment
from tests.events.log.broker.test_storing import store
from tests.full_disk import small_disk
from tests.ports import free_port

WAIT_S = 2.0
HANGS_S = 60.0
"""What waits without a deadline, waits for longer."""
"""A machine that is busy stands still for a second now and then; what waited without end took a minute."""
TICK = {"citizen": "ann", "arousal": 0.5}
LOOP = {
    "loop_id": "l1",
    "reflection_status": "done",
    "orchestrator_persona": "SAGE",
    "override_fatigue": False,
    "override_max_reruns": False,
    "override_by": None,
}


@contextlib.contextmanager
def gateway(folder: Path, nats: str, *flags: str, wait_s: float = WAIT_S) -> Iterator[httpx.Client]:
    """A gateway's process beside a broker, and a client to it."""
    port = free_port()
    with (folder / "gateway.log").open("wb") as said:
        process = subprocess.Popen(
            [
                *command("gateway", "--nats", nats, "--http", f"127.0.0.1:{port}"),
                *("--set", f"gateway.wait_s={wait_s:g}", *flags),
            ],
            stderr=said,
            cwd=folder,
            env=environment(),
        )
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=HANGS_S, trust_env=False) as client:

            def lives() -> bool:
                with contextlib.suppress(httpx.HTTPError):
                    return client.get("/healthz").status_code == 200
                return False

            until(lives, "the gateway lives")
            yield client
    finally:
        process.terminate()
        try:
            process.wait(20)
        finally:
            process.kill()
            process.wait()


def refused(client: httpx.Client) -> dict[str, str]:
    """Have readiness and requests refused, none of which hangs; return what readiness says."""
    ready = client.get("/readyz")
    assert ready.status_code == 503, ready.text
    for path, body in (("/orchestrator/loop-complete", LOOP), ("/v1/ticks", {"citizen": "ann", "arousal": 0.5})):
        answer = client.post(path, json=body)
        assert answer.status_code in (503, 504), answer.text
    status = client.get("/orchestrator/guardrails-status/l1")
    assert status.status_code in (404, 503), status.text
    checks: dict[str, str] = ready.json()["checks"]
    return checks


def test_before_its_broker_is_there_a_gateway_lives_and_says_that_it_is_not_ready(tmp_path: Path) -> None:
    with Broker(tmp_path / "broker") as broker:
        broker.kill()
        with gateway(tmp_path, broker.url) as client:
            assert refused(client) == {"log": "the broker has not been reached yet"}
            broker.start()
            until(lambda: "storing" in client.get("/readyz").json()["checks"], "the gateway has reached it")
            checks = client.get("/readyz").json()["checks"]
    assert (checks["log"], checks["storing"]) == ("ok", "ok")
    assert checks["guardrails"] == "no living worker is ready to run them"
    assert checks["stages"] == "not served: no worker reports at this broker"
    assert checks["ledger"] == "n/a"


def test_without_its_broker_or_beside_one_that_stands_still_a_gateway_refuses_in_time(
    broker: Broker, tmp_path: Path
) -> None:
    with gateway(tmp_path, broker.url) as client:
        until(lambda: client.get("/readyz").json()["checks"].get("judgements") == "ok", "the log is read")
        broker.pause()
        try:
            assert "no answer within 2 s" in refused(client)["log"]
        finally:
            broker.resume()
        broker.kill()
        until(
            lambda: "away" in client.get("/readyz").json()["checks"]["storing"], "it is known that the broker has gone"
        )
        assert "away" in refused(client)["storing"]


def test_a_probe_that_reads_files_is_told_what_readiness_says(broker: Broker, tmp_path: Path) -> None:
    """As Compose's health check is: to live and to reach the broker is not to serve."""
    file = tmp_path / "health.json"
    with gateway(tmp_path, broker.url, "--set", f"runtime.health_file={file}"):

        def fault() -> str:
            return why_not(str(file), "ready", time.monotonic()) if file.exists() else ""

        until(lambda: "stages: not served" in fault(), "the probe says what readiness says")
        assert "guardrails: no living worker" in fault()
        assert why_not(str(file), "live", time.monotonic()) == ""


def test_a_ledger_is_missed_where_there_was_one_and_only_there(broker: Broker, tmp_path: Path) -> None:
    with gateway(tmp_path, broker.url) as client:

        def said() -> str:
            checks: dict[str, str] = client.get("/readyz").json()["checks"]
            return checks.get("ledger", "")

        until(lambda: said() == "n/a", "none is expected")
        with projecting(broker, tmp_path / "ledger.db", tmp_path) as process:
            until(lambda: said() == "ok", "there is one")
            process.kill()
            until(lambda: "no process writes the ledger" in said(), "it is missed")


async def last_seq(broker: Broker) -> int:
    log = await JetStreamLog.connect(broker.url)
    try:
        return (await log.info()).last_seq
    finally:
        await log.close()


async def store_until_it_fails(broker: Broker) -> None:
    log = await JetStreamLog.connect(broker.url)
    try:
        with pytest.raises(LogError):
            await store(log, *range(1_000))
    finally:
        await log.close()


@pytest.mark.parametrize("who", ["another", "the gateway"])
def test_a_broker_that_never_stores_again_after_a_full_disk_is_told_until_it_is_started_again(
    who: str, tmp_path: Path
) -> None:
    """nats-server does not, once a write has failed; with room on its disk it answers all questions as if it did."""
    with (
        small_disk(tmp_path / "small", megabytes=24) as disk,
        Broker(disk.folder / "broker") as broker,
        gateway(tmp_path, broker.url) as client,
    ):

        def storing() -> str:
            return str(client.get("/readyz").json()["checks"].get("storing", ""))

        until(lambda: storing() == "ok", "it stores")
        assert asyncio.run(last_seq(broker)) == 0, "where nothing is in doubt, nothing is tried"
        disk.fill()
        if who == "another":
            until(lambda: "disk is full" in storing(), "that is seen")
            asyncio.run(store_until_it_fails(broker))
        else:  # it was asked for nothing, but its own appends are not confirmed
            until(lambda: client.post("/v1/ticks", json=TICK).status_code >= 500, "an append that fails")
        disk.clear()
        until(lambda: "stores nothing" in storing(), "an append that is under way is given up")
        for _ in range(3):
            assert storing() != "ok"
        broker.kill()
        broker.start()
        until(lambda: storing() == "ok", "it stores again")
        assert asyncio.run(last_seq(broker)) > 0
