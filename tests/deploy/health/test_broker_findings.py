"""What the doctor says of logins, servers and copies: judged from facts, and seen at real servers."""

import asyncio
import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from deploy.cli import main
from deploy.deploying.writing_broker import SETTINGS
from deploy.health.findings import Finding, Verdict, not_made
from deploy.health.rights_check import differences, judge_rights
from deploy.health.servers_check import ServerFacts, judge_copies, judge_servers, judge_settings, worst_storage
from deploy.processes.broker.users import workers_of_actors
from events.errors import LogError, NoLeader, NotPermitted, Unavailable, UnknownOutcome
from events.jetstream import Connection
from events.jetstream.rights import LoginRights, SubjectRights, covers, overlap
from events.jetstream.storage_check import LEADERLESS, storage_fault
from events.jetstream.stream import stream_config
from schemas.permissions import worker_user
from schemas.subjects import Partitions
from tests.broker import DEADLINE_S
from tests.cluster import Deployed, deployed
from tests.each import each
from tests.events.ledger.messages import exchanges, write

OK, WARN, FAIL, SKIP = Verdict.OK, Verdict.WARN, Verdict.FAIL, Verdict.SKIP


def facts(name: str, version: str = "2.15.1", behind: float = 0.0, **storage: Any) -> ServerFacts:
    return ServerFacts(name=name, version=version, behind_s=behind, storage=storage)


@each(
    ("servers", "verdict", "said"),
    [
        ([], SKIP, "system account"),
        ([facts("a"), facts("b")], OK, "2 servers, nats-server 2.15.1"),
        ([facts("a")], FAIL, "b did not answer"),
        ([facts("a"), facts("b", "2.14.0")], WARN, "2.14.0, 2.15.1"),
        ([facts("a"), facts("b", behind=2.0)], WARN, "clocks 2.000 s apart"),
        ([facts("a"), facts("b", behind=40.0)], FAIL, "clocks 40.000 s apart"),
    ],
)
def test_servers_answer_with_one_version_and_one_time(servers: list[ServerFacts], verdict: Verdict, said: str) -> None:
    found = judge_servers(servers, ("a", "b"))
    assert found.verdict is verdict
    assert said in found.detail
    assert bool(found.remedy) is (verdict in (WARN, FAIL))


def test_a_server_that_answers_and_stores_nothing_is_named() -> None:
    """One of a cluster switches JetStream off where its disk is full, and leaves it off."""
    off = msgspec.structs.replace(facts("b"), stores=False)
    found = judge_servers([facts("a"), off], ("a", "b"))
    assert (found.verdict, found.detail) == (FAIL, "b answers, but has JetStream switched off")
    assert "when it is started again" in found.remedy
    assert judge_servers([facts("a"), off], ("a",)).verdict is OK, "a server may be there for clients alone"


@each(
    ("wrong", "if_gone", "verdict", "said"),
    [
        (NotPermitted("no right"), "make it", WARN, "this user may not look"),
        (UnknownOutcome("none (nats: permissions violation for publish)"), "make it", WARN, "this user may not look"),
        (UnknownOutcome("gave no answer"), "make it", WARN, "nobody can look now"),
        (NoLeader("no leader"), "make it", WARN, "nobody can look now"),
        (Unavailable("nobody serves it"), "make it", FAIL, "nobody can look now"),
        (Unavailable("nobody serves it"), "", WARN, "nobody can look now"),
    ],
)
def test_a_check_that_cannot_be_made_is_not_called_a_missing_right(
    wrong: LogError, if_gone: str, verdict: Verdict, said: str
) -> None:
    found = not_made("x", "look", wrong, if_gone=if_gone)
    assert (found.verdict, found.detail) == (verdict, f"{said}: {wrong}")
    assert found.remedy == if_gone if verdict is FAIL else found.remedy
    gone = not_made("x", "look", wrong, connected=False, if_gone=if_gone)
    assert gone.verdict is WARN, "the broker went away meanwhile: nobody is to put a copy in the place of its store"


def test_fewer_servers_than_addresses_fail_where_their_names_are_unknown() -> None:
    found = judge_servers([facts("a"), facts("b")], (), 3)
    assert (found.verdict, found.detail) == (FAIL, "of 3 servers only a, b answered")


def test_the_server_that_flushes_least_counts() -> None:
    always, minutes = facts("a", sync_always=True), facts("b", sync_interval=120_000_000_000)
    assert worst_storage([always, minutes]) == minutes.storage
    assert worst_storage([always]) == always.storage
    assert worst_storage([facts("a")]) is None
    off = msgspec.structs.replace(facts("c", store_dir="/store"), stores=False)
    assert worst_storage([always, off]) == always.storage, "it stores nothing, and states no interval"


@each(
    ("few", "late", "verdict"),
    [([], [], OK), (["KV_x has 1"], [], FAIL), ([], ["X on b"], WARN), (["KV_x has 1"], ["X on b"], FAIL)],
)
def test_copies_are_as_many_as_configured_and_up_to_date(few: list[str], late: list[str], verdict: Verdict) -> None:
    found = judge_copies(few, late, 3)
    assert found.verdict is verdict
    assert bool(found.remedy) is (verdict is not OK)


@each(
    ("change", "verdict"),
    [
        ({}, OK),
        ({"max_age": 1}, FAIL),
        ({"storage": "memory"}, FAIL),
        ({"max_msgs": 10}, FAIL),
        ({"discard": "old"}, FAIL),
        ({"duplicate_window": 1}, FAIL),
        ({"duplicate_window": 600_000_000_000}, OK),
    ],
)
def test_a_stream_that_would_drop_messages_fails(change: dict[str, Any], verdict: Verdict) -> None:
    assert judge_settings(stream_config("X", Partitions(), 1) | change, Partitions()).verdict is verdict


def test_what_a_login_lacks_fails_and_what_it_has_besides_is_told() -> None:
    user = worker_user("router", ("router",))
    may = user.permissions
    right = LoginRights(
        publish=SubjectRights(may.publish_allow, may.publish_deny),
        subscribe=SubjectRights(may.subscribe_allow, may.subscribe_deny),
        responses={"max": 1},
    )
    assert differences(right, user) == ([], [])
    fewer = msgspec.structs.replace(right, publish=SubjectRights(may.publish_allow[1:], may.publish_deny))
    assert differences(fewer, user) == ([f"publish {may.publish_allow[0]}"], [])
    more = msgspec.structs.replace(
        right, publish=SubjectRights((*may.publish_allow, "log.*.*.swarm.>"), may.publish_deny)
    )
    assert differences(more, user) == ([], ["publish log.*.*.swarm.>"])
    assert differences(LoginRights(), user)[1][:1] == ["publish >"]
    assert judge_rights(["x"], ["y"], [], 3).verdict is FAIL
    assert judge_rights([], ["y"], [], 3).verdict is WARN
    assert judge_rights([], [], ["z"], 0).verdict is SKIP
    assert judge_rights([], [], ["z"], 1).verdict is OK


@each(
    ("pattern", "subject", "covered", "overlapping"),
    [
        ("a.>", "a.b", True, True),
        ("a.>", "a", False, False),
        ("a.*", "a.>", False, True),
        ("a.*.c", "a.b.*", False, True),
        ("a.b", "a.*", False, True),
        (">", "a.>", True, True),
        ("a.b", "a.c", False, False),
        ("a.*", "a.b.c", False, False),
        ("*.b", "a.b", True, True),
    ],
)
def test_patterns_cover_or_overlap(pattern: str, subject: str, covered: bool, overlapping: bool) -> None:
    assert covers(pattern, subject) is covered
    assert overlap(pattern, subject) is overlapping is overlap(subject, pattern)


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    with deployed(tmp_path_factory.mktemp("three"), nodes=3, workers=workers_of_actors()) as running:
        yield running


def told(running: Deployed, logins: Path | None = None) -> dict[str, Finding]:
    words = ["--config", str(running.folder / SETTINGS), "--context", str(logins or running.logins)]
    result = CliRunner().invoke(main, ["doctor", *words, "--json"])
    found = [msgspec.json.decode(line, type=Finding) for line in result.stdout.splitlines()]
    return {finding.check: finding for finding in found}


def test_a_cluster_as_it_should_be_passes_the_checks_of_its_broker(three: Deployed) -> None:
    found = told(three)
    for check in ("broker", "jetstream", "storing", "stream", "settings", "copies", "servers", "rights", "durability"):
        assert found[check].verdict is OK, found[check]
    assert found["servers"].detail.startswith("3 servers, nats-server 2.")
    assert found["rights"].detail == "9 logins have the catalogue's rights and no others"
    assert found["durability"].detail == "an acknowledged append survives a power cut"


def test_logins_of_another_release_are_told_with_what_to_do(three: Deployed, tmp_path: Path) -> None:
    copied = tmp_path / "logins"
    shutil.copytree(three.logins, copied)
    rows = json.loads((three.folder / "permissions.json").read_text())
    for row in rows:
        if row["login"] == "effectors":
            row["owners"] = ["llm", "reflex"]
    (tmp_path / "permissions.json").write_text(json.dumps(rows))
    found = told(three, copied)["rights"]
    assert found.verdict is FAIL
    assert "effectors lacks publish log.*.*.reflex.>" in found.detail
    assert "nats-server --signal reload" in found.remedy


def test_a_ledger_that_lies_here_says_nothing_of_a_broker_that_is_named(
    three: Deployed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".neuraxis").mkdir()
    write(tmp_path / ".neuraxis" / "ledger.db", exchanges(100))
    found = told(three)["ledger"]
    assert (found.verdict, found.detail) == (WARN, "no process writes the ledger")


def test_a_login_that_may_not_ask_the_ledger_s_process_does_not_find_that_there_is_none(three: Deployed) -> None:
    found = told(three, three.logins / "deciders.json")["ledger"]
    assert found.verdict is WARN
    assert "this user may not ask how far it is behind" in found.detail


def test_a_login_that_the_deployment_had_once_is_not_looked_at(three: Deployed, tmp_path: Path) -> None:
    copied = tmp_path / "logins"
    shutil.copytree(three.logins, copied)
    shutil.copy(three.folder / "permissions.json", tmp_path)
    shutil.copy(copied / "deciders.json", copied / "act.json")
    found = told(three, copied)["rights"]
    assert found.verdict is OK
    assert found.detail == "9 logins have the catalogue's rights and no others; act not looked at"


def test_fewer_copies_than_configured_are_told_and_made_good_by_the_command(three: Deployed) -> None:
    async def lower() -> None:
        connection = await Connection.open(three.access("admin"))
        name = "KV_NEURAXIS_snapshots"
        config = (await connection.api(f"STREAM.INFO.{name}"))["config"]
        await connection.api(f"STREAM.UPDATE.{name}", {**config, "num_replicas": 1})
        await connection.close()

    asyncio.run(lower())
    found = told(three)["copies"]
    assert (found.verdict, found.detail) == (FAIL, "KV_NEURAXIS_snapshots has 1; configured are 3 copies")
    assert "neuraxis deploy streams" in found.remedy
    assert "KV_NEURAXIS_snapshots: 3 copies, before 1" in three.make_streams()


def test_a_server_that_is_away_is_named(three: Deployed) -> None:
    three.servers[2].kill()
    try:
        end = time.monotonic() + DEADLINE_S
        while "servers" not in (found := told(three)):  # until the other two have chosen who answers for all
            assert time.monotonic() < end, found
        assert found["servers"].verdict is FAIL
        assert found["servers"].detail in (
            "neuraxis-3 did not answer",
            "of 3 servers only neuraxis-1, neuraxis-2 answered",
        )
    finally:
        three.servers[2].start()
        three.wait_ready()


def test_a_cluster_without_a_majority_is_told_as_that_and_not_as_jetstream_that_is_off(tmp_path: Path) -> None:
    with deployed(tmp_path, nodes=3, workers=workers_of_actors()) as running:

        async def leaderless() -> str:
            connection = await Connection.open(running.access("admin"))
            try:
                for server in running.servers[1:]:
                    server.kill()
                end = time.monotonic() + 60
                while (fault := await storage_fault(connection, "NEURAXIS")) != LEADERLESS:
                    assert not fault or any(word in fault for word in ("not answered", "away", "dropped")), fault
                    assert time.monotonic() < end, fault
                    await asyncio.sleep(0.2)
                with pytest.raises(NoLeader, match="has no leader now"):
                    await connection.api("INFO")
                return fault
            finally:
                await connection.close()

        assert "switched off" not in asyncio.run(leaderless())
        found = told(running)
        assert found["jetstream"].verdict is FAIL
        assert "has no leader now" in found["jetstream"].detail
        assert found["jetstream"].remedy.startswith("start the servers of the cluster that are away")
        assert (found["servers"].verdict, found["servers"].detail) == (FAIL, "of 3 servers only neuraxis-1 answered")
