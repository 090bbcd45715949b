"""Narrow logins read through the read service what their owners consume, and nothing else."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from actors.registry import ACTORS
from deploy.deploying.logins import one_login_each
from deploy.processes.broker.users import workers_of_actors
from deploy.processes.reading import serving_reads
from deploy.processes.reading.read_policy import ConsumerRequest, Denied, check_consumer, readable_by
from deploy.processes.reading.read_service import MOST_CHECKED
from events.errors import Unavailable
from events.jetstream import JetStreamLog
from events.jetstream.connection import ApiError
from events.jetstream.reading.durable_pull import DurablePull
from events.jetstream.reading.read_requests import await_read_service, gap_finder, use_rights
from events.jetstream.rights import covers
from events.losses import LOSS_FILTER
from events.routes import fence_filter, partition_filters, partition_names
from schemas.catalogue import CATALOGUE, requests_to
from schemas.event import topic_of
from schemas.permissions import READ_ROOT, STREAM, durable_name, durable_names, read_owners, read_root
from schemas.subjects import topic_filter
from tests.cluster import Deployed, deployed
from tests.each import each
from tests.events.sealing.records import said
from tests.events.setting import plain
from tests.faults.cuts import flip_bit_of

WORKERS = {**one_login_each(), "guards": ("reflex", "breaker", "swarm")}
EFFECTORS = workers_of_actors()["effectors"]
NAME = "nx-any-1"


@pytest.fixture(scope="module")
def single(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    with deployed(tmp_path_factory.mktemp("single"), nodes=1, workers=WORKERS) as running:
        yield running


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    with deployed(tmp_path_factory.mktemp("three"), nodes=3, workers=WORKERS) as running:
        asyncio.run(store_a_first_message(running))
        yield running


async def store_a_first_message(running: Deployed) -> None:
    """Have the log hold what each login asks for first: that a cluster holds no message is certain after seconds."""
    async with log_of(running, "gateway", served=False) as log:
        await log.append([plain(said("Hello", session="s", id="the first of all"))])


@asynccontextmanager
async def log_of(running: Deployed, login: str, *, served: bool = True) -> AsyncIterator[JetStreamLog]:
    log = await JetStreamLog.connect(running.access(login), create=False)
    try:
        await use_rights(log.connection, STREAM)
        if served:  # a server of a cluster learns a moment later who serves at another
            await await_read_service(log.connection, STREAM, 20)
        yield log
    finally:
        await log.close()


@asynccontextmanager
async def served_by(running: Deployed, owner: str) -> AsyncIterator[JetStreamLog]:
    async with log_of(running, owner) as log, serving_reads(log, owner):
        yield log


def forbidden_filters(owners: Sequence[str]) -> list[str]:
    """Return filters over what none of the owners consumes or publishes, told from the catalogue and the actors."""
    read = {topic_of(event) for owner in owners if owner in ACTORS for event in ACTORS[owner].consumes}
    read |= {topic_of(event) for owner in owners for event in requests_to(owner)}
    if set(ACTORS) & set(owners):
        read |= {"forged_id.operator.forget_ordered", "forged_id.memory.turns_forgotten"}
    foreign = [
        topic_filter(entry.topic)
        for entry in CATALOGUE.values()
        if entry.owner not in owners and entry.topic not in read and topic_filter(entry.topic) != LOSS_FILTER
    ]
    return ["log.>", "log.*.*.>", *foreign]


async def read_in_vain(log: JetStreamLog, filters: Sequence[str]) -> list[str]:
    """Try to get a consumer of each filter together with an allowed one, and the last messages; return what worked."""

    async def consume(wanted: str) -> None:
        request = body(LOSS_FILTER, wanted)
        await log.connection.api(f"CONSUMER.CREATE.{STREAM}.{NAME}", msgspec.to_builtins(request))

    through = []
    attempts = [*((consume, wanted) for wanted in filters), *((log.last, wanted) for wanted in filters[::5])]
    for attempt, wanted in attempts:
        try:
            await attempt(wanted)
        except ApiError as denied:
            if denied.status == 403:
                continue
            raise
        through.append(wanted)
    return through


async def read_by_all(running: Deployed, *, step: int) -> dict[str, list[str]]:
    """Have every login try every ``step``th forbidden filter; the pure test below looks at all of them."""
    async with served_by(running, "ledger"):
        found = {}
        for login, owners in WORKERS.items():
            async with log_of(running, login) as log:
                found[login] = await read_in_vain(log, forbidden_filters(owners)[::step])
        return found


def test_no_worker_s_login_reads_what_its_actors_do_not_consume(single: Deployed) -> None:
    assert asyncio.run(read_by_all(single, step=5)) == {login: [] for login in WORKERS}


def test_the_same_holds_in_a_cluster(three: Deployed) -> None:
    assert asyncio.run(read_by_all(three, step=15)) == {login: [] for login in WORKERS}


async def read_all_that_is_consumed(running: Deployed, partitions: int | None) -> None:
    async with served_by(running, "ledger"):
        for actor in ACTORS.values():
            async with log_of(running, actor.name) as log:
                for partition in partition_names(actor, log.partitions)[:partitions]:
                    await (await log.tail(partition_filters(actor, partition, log.partitions), 0)).close()
                    assert await log.last(fence_filter(actor, partition)) == 0
                assert (await log.losses()).last_seq == 0


def test_every_actor_reads_all_that_it_consumes(single: Deployed) -> None:
    asyncio.run(read_all_that_is_consumed(single, 2))


def test_every_actor_reads_all_that_it_consumes_in_a_cluster(three: Deployed) -> None:
    asyncio.run(read_all_that_is_consumed(three, 1))


def test_a_narrow_login_gets_messages_by_consumers_that_were_created_for_it(single: Deployed) -> None:
    async def run() -> None:
        async with served_by(single, "gateway") as gateway:
            sequence = await gateway.append([plain(said("Hello", session="s", id="by the read service"))])
            async with log_of(single, "reflex") as log:
                tail = await log.tail(["log.*.*.input.received", "log.*.*.input.answered"], sequence - 1)
                async with asyncio.timeout(20):
                    assert [stored.seq for stored in await tail.next()] == [sequence]
                await tail.close()
                found = await log.at(sequence)
                assert found is not None
                assert b"Hello" in found.data
            async with log_of(single, "monitor") as log:  # it consumes no inputs
                there = await log.at(sequence)
                assert there is not None
                assert (there.time_ns, there.data, there.headers) == (found.time_ns, b"", {})

    asyncio.run(run())


def test_a_narrow_login_is_told_where_the_log_lacks_messages(tmp_path: Path) -> None:
    rotten, last = 3, MOST_CHECKED + 500

    async def find(running: Deployed) -> None:
        async with served_by(running, "gateway"), log_of(running, "monitor") as log:
            find = gap_finder(log.connection, STREAM)
            assert find is not None
            assert await find(0, last + 2) == [(rotten, rotten), (last + 1, last + 2)]
            assert await find(rotten, last) == []
            assert await find(last, last) == []

    async def fill(running: Deployed) -> None:
        async with log_of(running, "gateway") as log:
            for begun in range(0, last, 500):
                await log.append([plain(said("x", session="s", id=f"number {begun + each}")) for each in range(500)])

    with deployed(tmp_path, nodes=1, workers={"monitor": ("monitor",)}) as running:
        asyncio.run(fill(running))
        running.servers[0].stop()
        flip_bit_of(running.servers[0].folder / "store", rotten)
        running.servers[0].start()
        running.wait_ready()
        asyncio.run(find(running))


def test_a_login_that_reads_everything_finds_gaps_by_itself(single: Deployed) -> None:
    async def run() -> bool:
        async with log_of(single, "ledger") as log:
            return log.connection.asks_to_read or gap_finder(log.connection, STREAM) is not None

    assert not asyncio.run(run())


@each("effector", EFFECTORS)
def test_an_effector_s_durable_consumers_are_created_by_the_ledger_s_process(single: Deployed, effector: str) -> None:
    filters = [topic_filter(topic_of(event)) for event in requests_to(effector)]

    async def run() -> None:
        async with served_by(single, "ledger"), served_by(single, "gateway"), log_of(single, effector) as log:
            for name in durable_names(effector):
                pull = DurablePull(log.connection, STREAM, name, filters)
                running = asyncio.create_task(pull.run())
                async with asyncio.timeout(20):
                    await pull.began.wait()
                running.cancel()
                await asyncio.wait([running])

    asyncio.run(run())


def test_without_a_read_service_a_worker_waits_and_then_says_what_to_start(single: Deployed) -> None:
    async def run() -> None:
        async with log_of(single, "reflex", served=False) as log:
            with pytest.raises(Unavailable, match="neuraxis worker ledger"):
                await await_read_service(log.connection, STREAM, 0.5)
            waiting = asyncio.create_task(await_read_service(log.connection, STREAM, 20))
            await asyncio.sleep(0)
            async with served_by(single, "gateway"):
                await waiting

    asyncio.run(run())


def test_a_reading_goes_on_once_reads_are_served_again_after_the_broker_restarted(tmp_path: Path) -> None:
    async def run(running: Deployed) -> None:
        async with log_of(running, "reflex", served=False) as log, log_of(running, "gateway") as gateway:
            async with served_by(running, "ledger"):
                tail = await log.tail(["log.*.*.input.received", "log.*.*.input.answered"], 0)
            back = asyncio.Event()
            gateway.connection.on_reconnect(back.set)
            await asyncio.to_thread(restart, running)  # its consumer is gone, and nobody serves reads
            async with asyncio.timeout(30):
                await back.wait()
                await gateway.append([plain(said("Hello", session="s", id="while nobody serves reads"))])
                async with served_by(running, "ledger"):
                    assert [stored.seq for stored in await tail.next()] == [1]
            await tail.close()

    def restart(running: Deployed) -> None:
        running.servers[0].kill()
        running.servers[0].start()
        running.wait_ready()

    with deployed(tmp_path, nodes=1, workers={"reflex": ("reflex",)}) as running:
        asyncio.run(run(running))


def body(*filters: str, action: str = "create", stream: str = STREAM, **more: Any) -> ConsumerRequest:
    return ConsumerRequest(stream, {"name": NAME, "filter_subjects": list(filters), **more}, action)


@each(
    ("asked", "why"),
    [
        (body("log.*.*.input.received", deliver_subject="forged_id.x"), "a reading has no deliver_subject"),
        (body("log.*.*.input.received", headers_only=True), "a reading has no headers_only"),
        (body(), "without a filter"),
        (body("log.*.*.alert.>"), "may not read"),
        (body("log.*.*.>"), "may not read"),
        (body(">"), "may not read"),
        (body("log.*.*.input.received", name="other"), "another stream or consumer"),
        (body("log.*.*.input.received", stream="KV_NEURAXIS_keys"), "another stream or consumer"),
        (body("log.*.*.input.received", durable_name=NAME), "would not be a new consumer"),
        (body("log.*.*.input.received", action="update"), "would not be a new consumer"),
        (body("log.*.*.input.received", action=""), "would not be a new consumer"),
        (ConsumerRequest(STREAM, {"name": NAME, "filter_subject": "log.>"}, "create"), "may not read log.>"),
    ],
)
def test_a_request_for_more_than_a_reading_is_denied(asked: ConsumerRequest, why: str) -> None:
    with pytest.raises(Denied, match=why):
        check_consumer(("reflex",), STREAM, NAME, asked, durable=False)


@each("config", [{"name": "nx-llm", "durable_name": "nx-llm"}, {"name": NAME, "durable_name": NAME}])
def test_a_durable_consumer_is_created_for_its_effector_alone(config: dict[str, Any]) -> None:
    wanted = ConsumerRequest(STREAM, {**config, "filter_subjects": ["log.*.*.input.received"]})
    with pytest.raises(Denied, match="not a durable consumer of reflex"):
        check_consumer(("reflex",), STREAM, config["name"], wanted, durable=True)


def test_what_is_readable_is_what_is_consumed_or_published_and_nothing_else() -> None:
    for owners in WORKERS.values():
        may = [pattern for owner in owners for pattern in readable_by(owner)]
        for filter in forbidden_filters(owners):
            assert not any(covers(pattern, filter) for pattern in may), (owners, filter)


def test_read_requests_that_make_no_sense_get_an_error_and_no_answer_of_the_server(single: Deployed) -> None:
    calls = {
        f"{READ_ROOT}.reflex.CONSUMER.CREATE.{STREAM}.nx-x": b"no json",
        f"{READ_ROOT}.reflex.STREAM.MSG.GET.{STREAM}": b'{"seq":1,"next_by_subj":">"}',
        f"{READ_ROOT}.reflex.STREAM.MSG.GET.KV_{STREAM}_keys": b'{"seq":1}',
        f"{READ_ROOT}.reflex.STREAM.INFO.{STREAM}": b"{}",
        f"{READ_ROOT}.reflex.LOG.GAPS.{STREAM}": b'{"after":"a"}',
    }

    async def run() -> list[int]:
        async with served_by(single, "gateway"), log_of(single, "reflex") as log:
            answers = [await log.connection.request(subject, data) for subject, data in calls.items()]
        return [msgspec.json.decode(answer.data)["error"]["code"] for answer in answers]

    assert asyncio.run(run()) == [400, 400, 403, 403, 400]


def test_an_answer_goes_to_an_inbox_and_never_into_the_log(single: Deployed) -> None:
    asked = f"{READ_ROOT}.reflex.STREAM.MSG.GET.{STREAM}"

    async def run() -> None:
        async with served_by(single, "ledger") as ledger, log_of(single, "reflex") as log:
            before = (await ledger.info()).last_seq
            for reply in ("log.00.00.memory.stored", "forged_id.memory.stored", f"{READ_ROOT}.llm.LOG.GAPS.{STREAM}"):
                await log.connection.publish(asked, b'{"seq":1}', reply=reply)
            # Requests come in order: once this one is answered, the others were taken.
            await log.connection.request(asked, b'{"seq":1}')
            assert (await ledger.info()).last_seq == before

    asyncio.run(run())


def test_a_read_request_names_its_owners_in_one_order() -> None:
    assert read_root(["router", "act"]) == read_root(["act", "router"]) == "nx-read.act-router"
    assert read_owners("act-router") == ("act", "router")
    with pytest.raises(ValueError, match="nobody: no such owner"):
        read_owners("act-nobody")
    assert durable_name("llm") == "nx-llm"
