"""Whatever stands on a subject or in a request, a running set goes on: a clear error, no crash, nothing lost.

The short form draws a few messages for every subject; ``make test-faults`` draws many, by several seeds.
"""

import asyncio
import itertools
import json
import os
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress

import httpx
import pytest

from actors.gateway import Client, new_input
from actors.registry import ACTORS
from deploy.health.readiness import LEDGER_QUERY
from deploy.processes.query_services import EXCHANGES_QUERY, OVERVIEW_QUERY
from events.decoding import Recorded, decode
from events.errors import LogError, Unavailable, UnknownOutcome
from events.jetstream import JetStreamLog
from events.ledger import compare, verify
from events.log import Stored
from schemas.event import topic_of
from schemas.permissions import EXCHANGE_QUERY, MEMBERS_BUCKET, QUERY_ROOT, READ_ROOT, SNAPSHOTS_BUCKET
from tests.actors.gateway.http.test_conformance import all_made_up
from tests.broker import Broker
from tests.faults.fuzz.bodies import bad_bodies
from tests.faults.fuzz.payloads import Bad, bad_messages
from tests.faults.rig import RunningSet, ledger_caught_up, read_all, running_set, waited

SEED = int(os.environ.get("NEURAXIS_SEED", "1"))
ANSWERED_S = 2.0
RECOVERS_S = 180.0
ENDS_S = 90.0
"""More than any exchange may last."""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningSet]:
    """A set at a broker without logins: whoever writes there may write everything."""
    folder = tmp_path_factory.mktemp("fuzzed")
    with (
        Broker(folder / "broker") as broker,
        running_set(folder / "set", processes=1, flags=("--nats", broker.url, "--http", "127.0.0.1:0")) as up,
    ):
        yield up


def pids(running: RunningSet) -> dict[str, int]:
    run = running.run_file()
    assert run is not None
    return {process.name: process.pid for process in run.processes}


async def asked(log: JetStreamLog, name: str, count: int = 4) -> None:
    """Have exchanges, each of which must end; a stage that recovers ends them as failed, which must be over in time."""
    async with Client.open(log) as edge:

        async def one(turn: int, number: int) -> str:
            addressed = new_input(
                "What is the capital of Peru?",
                agent=f"{name}-agent",
                session=f"{name}-{turn}-{number}",
                partitions=log.partitions,
                now_ns=time.time_ns(),
            )
            await edge.submit(addressed)
            end = (await edge.await_end(addressed.exchange, ENDS_S)).event
            return f"{end.stage}: {end.reason}" if end.action == "FAILED" else ""

        began = time.monotonic()
        for turn in itertools.count():
            failed = [each for each in await asyncio.gather(*(one(turn, number) for number in range(count))) if each]
            if not failed:
                return
            assert time.monotonic() < began + RECOVERS_S, failed
            await asyncio.sleep(1.0)


async def published(log: JetStreamLog, messages: list[Bad]) -> list[tuple[int, Bad]]:
    """Publish messages as they are; return those that the broker took, with their sequences."""
    taken = []
    for bad in messages:
        try:
            answer = await log.connection.request(bad.subject, bad.data, headers=dict(bad.headers))
        except LogError as refused:
            pytest.fail(f"{bad.wrong}: {refused}")
        if b'"seq"' in answer.data and b'"error"' not in answer.data:
            taken.append((int(answer.data.split(b'"seq":')[1].split(b",")[0].rstrip(b" }")), bad))
    return taken


def unanswered(stored: list[Stored], taken: list[tuple[int, Bad]]) -> list[str]:
    """Return the unreadable messages on consumed subjects of which no actor says that it could not decide them."""
    consumed = {topic_of(event) for actor in ACTORS.values() for event in actor.consumes}
    by_seq = {each.seq: each for each in stored}
    said = {each.headers.get("ce-causeseq") for each in stored if each.subject.endswith(".failed")}
    unreadable = {seq for seq, _ in taken if not isinstance(decode(by_seq[seq]), Recorded)}
    return [
        f"{seq}: {bad.wrong}"
        for seq, bad in taken
        if seq in unreadable and "forged_id." + bad.subject.split(".", 3)[3] in consumed and str(seq) not in said
    ]


def fuzz(running: RunningSet, seed: int, each: int) -> None:
    before = pids(running)

    async def main() -> None:
        async with running.log() as log:
            await asked(log, f"before-{seed}")
            taken = await published(log, list(bad_messages(seed, each, log.partitions)))
            await asked(log, f"after-{seed}")
            # A message of a version that is unknown is left to a newer release for a while.
            end = time.monotonic() + ENDS_S
            while left := unanswered(stored := await read_all(log), taken):
                assert time.monotonic() < end, "\n".join(left)
                await asyncio.sleep(0.5)
            await ledger_caught_up(running.data.ledger, log)
            # A forged anchor vouches for a chain that is not there: that is found, and nothing else.
            anchors = [each for each in stored if each.subject.endswith("ledger.anchored")]
            forged = {each.seq for each in anchors if not each.headers.get("ce-source", "").startswith("neuraxis/")}
            compared = await compare(running.data.ledger, log.as_stored())
            found = [*verify(running.data.ledger).findings, *compared.findings]
            assert [each for each in found if each.seq not in forged] == []
            print(f"seed {seed}: {len(taken)} bad messages, {len(stored)} messages in the log")

    asyncio.run(main())
    waited(running.ready, "every program to be ready")
    assert pids(running) == before, running.said.read_text()[-4000:]


ANSWERS_S = 60.0
GIVEN = ("method", "url", "headers", "params", "json", "data")
MADE_UP = 12
"""Requests for each operation that follow the document, and as many that do not."""
BUSY = (503, 504)
"""What a set may answer whose machine is busy."""


def fuzz_http(running: RunningSet, seed: int) -> None:
    before, run = pids(running), running.run_file()
    assert run is not None
    wrong, statuses = [], Counter[int]()
    with httpx.Client(base_url=run.http, timeout=ANSWERS_S, trust_env=False) as client:
        document = client.get("/schema").json()
        for bad in bad_bodies(document, seed):
            headers = {"content-type": bad.content_type} if bad.content_type else {}
            answer = client.request(bad.method, bad.path, content=bad.body, headers=headers)
            statuses[answer.status_code] += 1
            if answer.status_code >= 500 or (answer.status_code >= 400 and not _says_why(answer)):
                wrong.append(f"{bad.wrong}: {answer.status_code} {answer.text[:300]}")
        assert client.get("/healthz").status_code == 200
    print(f"seed {seed}: {sum(statuses.values())} bad bodies, answered {dict(sorted(statuses.items()))}")
    assert not wrong, "\n".join(wrong)
    assert set(statuses) - {200}

    async def main() -> None:
        async with running.log() as log:
            await asked(log, f"http-{seed}")

    asyncio.run(main())
    waited(running.ready, "every program to be ready")
    assert pids(running) == before, running.said.read_text()[-4000:]


def _says_why(answer: httpx.Response) -> bool:
    """Whether a refusal is JSON that tells a person something."""
    try:
        told = json.dumps(answer.json())
    except ValueError:
        return False
    return len(told) > 20 and "Traceback" not in told


def test_bad_bodies_of_every_request_are_refused_with_a_reason_and_stop_nothing(running: RunningSet) -> None:
    fuzz_http(running, SEED)


@pytest.mark.faults
@pytest.mark.parametrize("seed", range(SEED, SEED + 10))
def test_many_bad_bodies_of_every_request_stop_nothing(running: RunningSet, seed: int) -> None:
    fuzz_http(running, seed)


@pytest.mark.faults
def test_requests_that_are_made_up_by_the_document_or_against_it_stop_nothing(running: RunningSet) -> None:
    """What Schemathesis makes up for the gateway's document; that answers conform to it is tested without a set."""
    import requests  # takes long, and each process of a run collects this module

    before, run, wrong = pids(running), running.run_file(), []
    assert run is not None
    statuses = Counter[int]()
    with requests.Session() as session:
        session.trust_env = False
        for case in all_made_up(MADE_UP):
            given = case.as_transport_kwargs(base_url=run.http)
            known = {
                name: given[name] for name in ("method", "url", "headers", "params", "json", "data") if name in given
            }
            with session.send(requests.Request(**known).prepare(), timeout=ANSWERS_S, stream=True) as answer:
                statuses[answer.status_code] += 1
                if answer.status_code >= 500 and answer.status_code not in BUSY:
                    wrong.append(f"{case.as_curl_command()}: {answer.status_code} {answer.text[:300]}")
    print(f"{sum(statuses.values())} requests, answered {dict(sorted(statuses.items()))}")
    assert not wrong, "\n".join(wrong[:10])
    waited(running.ready, "every program to be ready")
    assert pids(running) == before, running.said.read_text()[-4000:]


def test_bad_and_forged_messages_on_every_subject_stop_nothing(running: RunningSet) -> None:
    fuzz(running, SEED, each=4)


WILD = (
    b"",
    b"{",
    b"null",
    b"[]",
    b'{"exchange": 7}',
    b"\xff\xfe",
    rb'{"exchange": "\ud800"}',
    b"[" * 5000,
    b"x" * 900_000,
)
"""Bodies of requests, heartbeats and snapshots."""


def test_bad_requests_to_services_and_bad_heartbeats_and_snapshots_stop_nothing(running: RunningSet) -> None:
    before = pids(running)
    services = (
        EXCHANGE_QUERY, EXCHANGES_QUERY, OVERVIEW_QUERY, LEDGER_QUERY, f"{QUERY_ROOT}.reflex.partitions",
        *(f"{READ_ROOT}.{owners}.{call}" for owners in ("reflex", "nobody") for call in ("STREAM.INFO", "LOG.x", "x")),
    )  # fmt: skip

    async def main() -> None:
        async with running.log() as log:
            for subject in services:
                for body in WILD:
                    with suppress(Unavailable, UnknownOutcome):  # nobody serves some of them
                        await log.connection.request(subject, body, deadline=ANSWERED_S)
            for number, body in enumerate(WILD):
                await log.connection.request(f"$KV.{MEMBERS_BUCKET}.stranger-{number}", body)
                await log.connection.request(f"$KV.{SNAPSHOTS_BUCKET}.reflex.{number:02}", body)
            await asked(log, "services")

    asyncio.run(main())
    waited(running.ready, "every program to be ready")
    assert pids(running) == before, running.said.read_text()[-4000:]


@pytest.mark.faults
@pytest.mark.parametrize("seed", range(SEED, SEED + 5))
def test_many_bad_and_forged_messages_on_every_subject_stop_nothing(running: RunningSet, seed: int) -> None:
    fuzz(running, seed, each=23)
