"""Who may make, read and destroy the keys of sessions, tried against a real server with the catalogue's users."""

import asyncio
import json
from collections.abc import Iterator

import pytest

from events.jetstream import JetStreamLog, KeyValueMembership, KeyValueSnapshots
from events.sealing.keys import key_name
from schemas.permissions import MEMBERS_BUCKET, SNAPSHOTS_BUCKET, STREAM, keys_bucket
from tests.broker import Broker
from tests.each import each
from tests.events.sealing.records import said
from tests.events.setting import collect, plain
from tests.schemas.access.test_permissions import USERS, access, client_of, configured, denied

EDGES = ("gateway", "operator")
KEYS = keys_bucket(STREAM)
READING = (f"$JS.API.STREAM.MSG.GET.KV_{KEYS}", f"$JS.API.DIRECT.GET.KV_{KEYS}")
MAKING = f"$KV.{KEYS}.{'0' * 64}"
DESTROYING = f"$JS.API.STREAM.MSG.DELETE.KV_{KEYS}"
WORKERS = sorted(set(USERS) - {"observer", "reader", "admin", "specialist", *EDGES})


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    configuration = "authorization: " + json.dumps({"users": [configured(user) for user in USERS.values()]})
    with Broker(tmp_path_factory.mktemp("broker"), more=configuration) as server:
        asyncio.run(prepared(server.url))
        yield server.url


async def prepared(url: str) -> None:
    log = await JetStreamLog.connect(access(url, "admin"), sealed=True)
    await KeyValueMembership.over(log.connection)
    await KeyValueSnapshots.over(log.connection)
    await log.close()


@each("user", WORKERS)
def test_workers_read_keys_and_neither_make_nor_destroy_any(url: str, user: str) -> None:
    subjects = [*READING, MAKING, DESTROYING]
    assert asyncio.run(denied(url, user, subjects)) == {MAKING, DESTROYING}


def test_edges_make_keys_and_the_operator_alone_destroys_them(url: str) -> None:
    assert asyncio.run(denied(url, "gateway", [*READING, MAKING, DESTROYING])) == {DESTROYING}
    assert asyncio.run(denied(url, "operator", [*READING, MAKING, DESTROYING])) == set()


def test_the_admin_puts_back_the_keys_of_a_backup(url: str) -> None:
    assert asyncio.run(denied(url, "admin", [*READING, MAKING])) == set()
    assert asyncio.run(denied(url, "admin", [f"$KV.{keys_bucket('OTHER')}.a"])) == {f"$KV.{keys_bucket('OTHER')}.a"}


@each(
    "user, place",
    [
        ("gateway", MAKING),
        ("operator", MAKING),
        ("reflex", f"$KV.{SNAPSHOTS_BUCKET}.reflex.07"),
        ("reflex", f"$KV.{MEMBERS_BUCKET}.w"),
    ],
)
@each("what", ["all", "sub"])
def test_whoever_writes_one_value_of_a_bucket_removes_no_others_by_it(
    url: str, user: str, place: str, what: str
) -> None:
    async def body() -> bytes:
        async with client_of(url, user) as (client, _):
            answer = await client.request(place, b"x", timeout=5, headers={"Nats-Rollup": what})
            return answer.data

    assert b"rollup not permitted" in asyncio.run(body())


@each("user", ["observer", "reader", "specialist"])
def test_who_only_listens_gets_no_key(url: str, user: str) -> None:
    assert asyncio.run(denied(url, user, [*READING, MAKING, DESTROYING])) == {*READING, MAKING, DESTROYING}
    assert asyncio.run(denied(url, user, [f"$KV.{KEYS}.>"], kind="subscription")) == {f"$KV.{KEYS}.>"}


def test_an_input_is_sealed_by_an_edge_read_by_a_worker_and_forgotten_by_the_operator(url: str) -> None:
    async def body() -> None:
        gateway = await JetStreamLog.connect(access(url, "gateway"), create=False)
        await gateway.append([plain(said("mine", session="s1"))])
        reader = await JetStreamLog.connect(access(url, "ledger"), create=False)
        worker = await JetStreamLog.connect(access(url, "reflex"), create=False)
        operator = await JetStreamLog.connect(access(url, "operator"), create=False)
        for log in (reader, worker, operator):
            assert b'"mine"' in (await collect(log))[0].data
        assert operator.sealing is not None
        assert await operator.sealing.keyring.store.destroy(key_name("ann", "s1"))
        fresh = await JetStreamLog.connect(access(url, "ledger"), create=False)
        assert b'"mine"' not in (await collect(fresh))[0].data
        for log in (gateway, reader, worker, operator, fresh):
            await log.close()

    asyncio.run(body())


def test_a_worker_replaces_its_own_snapshots_and_the_operator_drops_any(url: str) -> None:
    async def body() -> None:
        worker = await JetStreamLog.connect(access(url, "reflex"), create=False)
        operator = await JetStreamLog.connect(access(url, "operator"), create=False)
        shelf = await KeyValueSnapshots.over(worker.connection)
        await shelf.save("reflex.07", b"one", 0)
        await shelf.save("reflex.07", b"two", 0)
        state = await worker.connection.api(f"STREAM.INFO.KV_{SNAPSHOTS_BUCKET}")
        assert state["state"]["messages"] == 1
        place = f"$KV.{SNAPSHOTS_BUCKET}.reflex.07"
        assert await denied(url, "operator", [place]) == {place}
        await KeyValueSnapshots(operator.connection).drop("reflex.07")
        assert await shelf.load("reflex.07") is None
        await worker.close()
        await operator.close()

    asyncio.run(body())
