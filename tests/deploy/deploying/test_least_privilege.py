"""Logins of ``deploy nats-conf`` at a real server, and at a cluster of three: what none of them may do."""

import asyncio
from collections.abc import Iterator

import pytest

from actors.registry import ACTORS
from deploy.deploying.logins import one_login_each
from deploy.processes.broker.users import SYSTEM, workers_of_actors
from deploy.processes.worker import stand_ins_of
from events.jetstream import Connection
from events.jetstream.rights import ask_rights
from schemas.input_path import WITNESSES
from tests.cluster import Deployed, deployed
from tests.deploy.deploying.attempts import forbidden_to, let_through
from tests.each import each

WORKERS = {**one_login_each(), **workers_of_actors(), "guards": ("reflex", "breaker", "swarm")}
ROLES = ("operator", "admin", "ledger", "gateway", "observer", "reader", "specialist")
LOGINS = sorted({*WORKERS, *ROLES})


@pytest.fixture(scope="module")
def single(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    with deployed(tmp_path_factory.mktemp("single"), nodes=1, workers=WORKERS) as running:
        yield running


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    with deployed(tmp_path_factory.mktemp("three"), nodes=3, workers=WORKERS) as running:
        yield running


def test_there_is_a_login_for_every_actor_and_kind_of_process(single: Deployed) -> None:
    assert sorted(single.users) == LOGINS
    assert {*ACTORS, "llm", "delegate", "webhook"} <= set(LOGINS)


@each("login", LOGINS)
def test_no_login_does_what_is_not_its_own(single: Deployed, login: str) -> None:
    attempts = forbidden_to(single.users[login], [*LOGINS, SYSTEM])
    assert asyncio.run(let_through(single.access(login), attempts)) == []


def test_the_same_holds_in_a_cluster(three: Deployed) -> None:
    async def run() -> dict[str, list[str]]:
        found = {}
        for login in LOGINS:
            attempts = forbidden_to(three.users[login], [*LOGINS, SYSTEM])
            found[login] = await let_through(three.access(login), attempts)
        return found

    assert asyncio.run(run()) == {login: [] for login in LOGINS}


def test_a_cluster_keeps_three_copies_of_stream_and_buckets(three: Deployed) -> None:
    assert three.make_streams() == [
        "NEURAXIS: 3 copies",
        "KV_NEURAXIS_members: 3 copies",
        "KV_NEURAXIS_snapshots: 3 copies",
    ]


@each(
    ("login", "hosts", "expected"),
    [("reflex", ["reflex"], ()), ("guards", ["reflex", "breaker"], ("swarm",)), ("deciders", ["act"], WITNESSES)],
)
def test_a_worker_stands_in_only_for_whom_its_login_may_append(
    single: Deployed, login: str, hosts: list[str], expected: tuple[str, ...]
) -> None:
    async def run() -> tuple[str, ...]:
        connection = await Connection.open(single.access(login))
        try:
            return await stand_ins_of(connection, hosts)
        finally:
            await connection.close()

    assert asyncio.run(run()) == expected


def test_a_server_says_what_a_login_may(single: Deployed) -> None:
    async def run() -> bool:
        connection = await Connection.open(single.access("router"))
        try:
            who = await ask_rights(connection)
        finally:
            await connection.close()
        assert who is not None
        may = single.users["router"].permissions
        assert who.account == "NEURAXIS"
        assert set(who.permissions.publish.allow) == set(may.publish_allow)
        assert set(who.permissions.publish.deny) == set(may.publish_deny)
        return who.permissions.responds

    assert asyncio.run(run())
