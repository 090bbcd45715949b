"""A gateway that many come to at once, some of them slowly, some with too much: it stays small, and loses nothing."""

import asyncio
import re
from pathlib import Path
from typing import Any

import httpx
import pytest

from events.jetstream import JetStreamLog
from schemas.subjects import topic_filter
from tests.broker import Broker
from tests.deploy.processes.gateway.test_gateway_outage import gateway

SLOTS = 8
PATIENCE_S = 120.0
FLAGS = ("--set", f"gateway.concurrent={SLOTS}")
CROWD_WAIT_S = 30.0
LARGE = b'{"agent": "ann", "arousal": 0.5, "working_memory": ["' + b"a" * 900_000 + b'"]}'
OVERSIZE = b" " * 1_500_000
GROWTH_BYTES = 96 * 1024 * 1024
"""What may be added at most: some bodies of a megabyte at once, and what the allocator keeps of them."""


def memory_of(process: int) -> int:
    """Return the most that a process has had in memory, in bytes."""
    told = Path(f"/proc/{process}/status").read_text()
    [kibibytes] = re.findall(r"VmHWM:\s+(\d+) kB", told)
    return int(kibibytes) * 1024


def process_of(port: int) -> int:
    """Return the process whose command line says that it listens on a port."""
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if f"127.0.0.1:{port}".encode() in file.read_bytes():
                return int(file.parent.name)
        except OSError:  # it has ended
            continue
    raise AssertionError(f"nobody listens on {port}")


async def held(broker: Broker) -> set[int]:
    """Return the sequences of all ticks in the log."""
    log = await JetStreamLog.connect(broker.url)
    try:
        last = (await log.info()).last_seq
        return {
            stored.seq
            async for batch in log.history([topic_filter("forged_id.tick.observed")], 0, last)
            for stored in batch
        }
    finally:
        await log.close()


@pytest.mark.parametrize("clients", [60, pytest.param(500, marks=pytest.mark.faults)])
def test_of_a_crowd_some_are_told_to_come_again_and_nothing_that_was_accepted_is_lost(
    clients: int, broker: Broker, tmp_path: Path
) -> None:
    with gateway(tmp_path, broker.url, *FLAGS, wait_s=CROWD_WAIT_S) as single:
        url = str(single.base_url)
        process = process_of(single.base_url.port or 0)
        accepted: list[int] = []
        answered: dict[int, int] = {}

        async def one(client: httpx.AsyncClient, number: int) -> None:
            bodies: tuple[Any, ...] = ({"agent": "ann", "arousal": 0.5}, LARGE, OVERSIZE)
            for place, body in enumerate(bodies):
                sent = {"content": body} if isinstance(body, bytes) else {"json": body}
                headers = {"Idempotency-Key": f"{number}-{place}"}
                answer = await client.post("/v1/ticks", headers=headers, **sent)
                answered[answer.status_code] = answered.get(answer.status_code, 0) + 1
                if answer.status_code == 202:
                    accepted.append(answer.json()["seq"])
                if answer.status_code == 429:
                    assert int(answer.headers["retry-after"]) >= 1

        async def crowd() -> None:
            limits = httpx.Limits(max_connections=None)
            async with (
                asyncio.timeout(PATIENCE_S),
                httpx.AsyncClient(base_url=url, timeout=PATIENCE_S, limits=limits, trust_env=False) as client,
            ):
                # One at least is accepted, however the crowd comes.
                assert (await client.post("/v1/ticks", json={"agent": "ann", "arousal": 0.5})).status_code == 202
                before = memory_of(process)
                async with asyncio.TaskGroup() as tasks:
                    for number in range(clients):
                        tasks.create_task(one(client, number))
                assert memory_of(process) - before < GROWTH_BYTES
                # Nobody is left who is being served.
                assert (await client.post("/v1/ticks", json={"agent": "ann", "arousal": 0.5})).status_code == 202

        asyncio.run(crowd())
        assert set(answered) <= {202, 400, 413, 429}
        assert set(accepted) <= asyncio.run(held(broker))
        assert len(set(accepted)) == len(accepted)


@pytest.mark.parametrize("clients", [40, pytest.param(500, marks=pytest.mark.faults)])
def test_who_sends_slowly_is_cut_off_and_others_are_served_meanwhile(
    clients: int, broker: Broker, tmp_path: Path
) -> None:
    flags = (*FLAGS, "--set", "gateway.header_s=2", "--set", "gateway.body_s=2")
    begun = (
        b"POST /v1/ticks HTTP/1.1\r\nHost: 127",
        b"POST /v1/ticks HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\n{",
    )
    with gateway(tmp_path, broker.url, *flags, wait_s=CROWD_WAIT_S) as single:
        port = single.base_url.port or 0

        async def slow(sent: bytes, begun: asyncio.Semaphore) -> bytes:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                writer.write(sent)
                begun.release()
                return await reader.read()
            finally:
                writer.close()

        async def crowd() -> list[bytes]:
            there = asyncio.Semaphore(0)
            async with asyncio.timeout(PATIENCE_S):
                slowly = [asyncio.create_task(slow(begun[number % 2], there)) for number in range(clients)]
                for _ in slowly:
                    await there.acquire()
                async with httpx.AsyncClient(base_url=str(single.base_url), timeout=60, trust_env=False) as client:
                    assert (await client.get("/healthz")).status_code == 200
                    return list(await asyncio.gather(*slowly))

        told = asyncio.run(crowd())
        assert {said[:12] for said in told[::2]} == {b""}
        assert {said[:12] for said in told[1::2]} <= {b"HTTP/1.1 408", b"HTTP/1.1 429"}
        assert single.post("/v1/ticks", json={"agent": "ann", "arousal": 0.5}).status_code == 202
