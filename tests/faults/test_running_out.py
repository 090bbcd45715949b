"""A process that runs out of file descriptors or memory: told before, refused in time, and well again by itself.

The limits are those of a running process, lowered and raised again (``ulimit`` and ``RLIMIT_AS`` of a live process).
"""

import asyncio
import json
import os
import resource
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from events.decoding import Recorded, decode
from schemas.vocabulary.alerts import Alert
from schemas.vocabulary.ledger import ResourceScarce, ResourceSufficient
from tests.faults.rig import RunningSet, read_all, running_set, waited

WITHIN_S = 5.0
"""Seconds that a caller waits for an answer or a refusal, at most."""


def test_what_runs_out_is_told_before_refused_in_time_and_well_again_by_itself(tmp_path: Path) -> None:
    with running_set(tmp_path / "set") as running:
        run = running.run_file()
        assert run is not None
        gateway = running.pid("gateway")
        # Connections that are open already: a gateway without descriptors can still answer on them.
        with httpx.Client(base_url=run.http, timeout=WITHIN_S) as caller, httpx.Client(base_url=run.http) as prober:
            assert caller.post("/v1/chat/completions", json=_hello()).status_code == 200
            assert prober.get("/readyz").status_code == 200
            for what, number, scarce, spent in (
                ("file descriptors", resource.RLIMIT_NOFILE, _descriptors(gateway, 1), _descriptors(gateway, 0)),
                ("address space", resource.RLIMIT_AS, _addresses(gateway, 1.05), _addresses(gateway, 1.012)),
            ):
                with _limit(gateway, number, scarce()):
                    told = f"{what} of process gateway"
                    waited(lambda what=what: what in _scarce(running), f"a warning of the {told}", 30)
                    with _limit(gateway, number, spent()):
                        began = time.monotonic()
                        answer = prober.get("/readyz", timeout=WITHIN_S)
                        assert time.monotonic() - began < WITHIN_S
                        assert answer.status_code == 503, answer.text
                        assert f"next to no {what}" in answer.text
                        _asked_in_time(caller)
                waited(lambda what=what: what not in _scarce(running), f"the end of the {told}", 30)
                assert prober.get("/readyz").status_code == 200
                assert caller.post("/v1/chat/completions", json=_hello()).status_code == 200
        assert running.ready()
        assert running.pid("gateway") == gateway, "it was restarted"
        alerts = asyncio.run(_alerts(running))
        assert [(each.severity, each.source, each.status) for each in alerts] == [
            ("warning", "ledger", "firing"),
            ("warning", "ledger", "resolved"),
        ] * 2


def _hello() -> dict[str, object]:
    return {"model": "neuraxis", "messages": [{"role": "user", "content": "Hello there"}]}


def _asked_in_time(caller: httpx.Client) -> None:
    """Ask while something is used up: an answer or a refusal comes in time."""
    began = time.monotonic()
    try:
        answer = caller.post("/v1/chat/completions", json=_hello())
    except httpx.TransportError as refused:
        print(f"refused after {time.monotonic() - began:.2f} s: {type(refused).__name__}")
    else:
        print(f"{answer.status_code} after {time.monotonic() - began:.2f} s")
        assert answer.status_code in (200, 503), answer.text
    assert time.monotonic() - began < 2 * WITHIN_S


@contextmanager
def _limit(pid: int, what: int, soft: int) -> Iterator[None]:
    before = resource.prlimit(pid, what)
    resource.prlimit(pid, what, (soft, before[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, what, before)


def _descriptors(pid: int, left: int) -> Callable[[], int]:
    return lambda: len(os.listdir(f"/proc/{pid}/fd")) + left


def _addresses(pid: int, share: float) -> Callable[[], int]:
    def limit() -> int:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[0])
        return int(pages * os.sysconf("SC_PAGE_SIZE") * share)

    return limit


def _scarce(running: RunningSet) -> set[str]:
    """Return the gateway's resources that the log says are scarce."""
    found: set[str] = set()
    for event in asyncio.run(_events(running)):
        if isinstance(event, ResourceScarce) and event.whose.startswith("process gateway on "):
            found.add(event.resource)
        elif isinstance(event, ResourceSufficient):
            found.discard(event.resource)
    return found


async def _events(running: RunningSet) -> list[object]:
    async with running.log() as log:
        recorded = map(decode, await read_all(log))
        return [each.message.event for each in recorded if isinstance(each, Recorded)]


async def _alerts(running: RunningSet) -> list[Alert]:
    found = [event for event in await _events(running) if isinstance(event, Alert) and event.source == "ledger"]
    return [each for each in found if "gateway" in json.dumps(each.figures)]
