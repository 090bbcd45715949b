"""What the doctor concludes from what it sees."""

import asyncio
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from actors.gateway.agents import AgentPer
from actors.swarm.settings import SwarmSettings
from actors.webhook.settings import Receiver
from deploy.cli.options import Target
from deploy.cli.running.doctor import _set_to_examine
from deploy.config.loading import Layer, all_sections, resolve
from deploy.config.models import ModelChoice
from deploy.health import doctor
from deploy.health.findings import Finding, Verdict
from deploy.health.readiness import NO_LEDGER, LedgerHealth
from deploy.health.session_keys_check import examine_keys
from deploy.health.stage_watch import needed_by
from deploy.processes.running_set import DataFolder, ModelInUse, RunFile, RunSettings
from deploy.processes.supervising.supervisor import Status
from deploy.processes.up import run_settings
from events.jetstream import JetStreamLog, storage_check
from schemas.subjects import FormerCounts, Partitions
from tests.broker import Broker
from tests.each import each
from tests.events.ledger.messages import exchanges, write
from tests.events.setting import plain, record

OK, WARN, FAIL, SKIP = Verdict.OK, Verdict.WARN, Verdict.FAIL, Verdict.SKIP


def run_file(*processes: Status) -> RunFile:
    return RunFile(
        pid=os.getpid(),
        started="2030-01-01T00:00:00+00:00",
        version="0",
        nats_url="nats://127.0.0.1:1",
        processes=processes,
    )


@each(
    ("first", "last", "messages", "verdict"),
    [(1, 10, 10, OK), (0, 0, 0, OK), (1, 10, 9, FAIL), (3, 10, 8, FAIL), (11, 10, 0, FAIL)],
)
def test_a_stream_must_hold_every_message_from_the_first(
    first: int, last: int, messages: int, verdict: Verdict
) -> None:
    state = {"first_seq": first, "last_seq": last, "messages": messages, "bytes": 100}
    assert doctor.judge_stream("NEURAXIS", state, 1).verdict is verdict


@each(
    ("first", "last", "messages", "trimmed", "verdict"),
    [(11, 20, 10, 10, OK), (11, 20, 9, 10, FAIL), (12, 20, 9, 10, FAIL), (11, 20, 10, 0, FAIL)],
)
def test_what_was_trimmed_into_the_ledger_is_not_missing(
    first: int, last: int, messages: int, trimmed: int, verdict: Verdict
) -> None:
    state = {"first_seq": first, "last_seq": last, "messages": messages, "bytes": 100}
    found = doctor.judge_stream("NEURAXIS", state, 1, trimmed)
    assert found.verdict is verdict
    assert ("in its ledger alone" in found.detail) is (verdict is OK)


def test_the_ledger_that_alone_has_what_was_trimmed_is_not_to_be_begun_anew() -> None:
    found = doctor.judge_ledger(Path("ledger.db"), None, 20, 10)
    assert found.verdict is WARN
    assert "do not begin another" in found.remedy


@each(("failure", "verdict"), [("", OK), ("write error: no space left", FAIL), ("the broker holds no stream X", SKIP)])
def test_a_broker_that_stores_nothing_any_more_fails_with_what_it_says(failure: str, verdict: Verdict) -> None:
    found = doctor.judge_storage(failure)
    assert found.verdict is verdict
    assert failure in found.detail


@each(
    ("failure", "remedy"),
    [
        ("write error: no space left", "make room"),
        (storage_check.LEADERLESS, "start the servers of the cluster"),
        (storage_check.SWITCHED_OFF, "start nats-server with `jetstream"),
        ("stream NEURAXIS is at its limit of 10 bytes (max_bytes): raise it", "raise that limit"),
        (f"{storage_check.KEYS_GONE}: put back", "put back a copy"),
        ("the broker has not answered within 2 s", "look whether its process runs, or stands still"),
        ("the broker is away", "look whether its process runs"),
    ],
)
def test_what_to_do_is_said_for_what_keeps_the_broker_from_storing(failure: str, remedy: str) -> None:
    assert remedy in doctor.judge_storage(failure).remedy


def test_one_copy_is_never_called_highly_available() -> None:
    state = {"first_seq": 1, "last_seq": 1, "messages": 1, "bytes": 100}
    assert "not highly available" in doctor.judge_stream("NEURAXIS", state, 1).detail
    assert "3 copies" in doctor.judge_stream("NEURAXIS", state, 3).detail


def test_other_partition_counts_than_configured_fail_with_those_to_configure() -> None:
    assert doctor.judge_partitions(Partitions(4, 16), Partitions(4, 16)).verdict is OK
    divided = Partitions(8, 32, (FormerCounts(100, 4, 16),))
    assert doctor.judge_partitions(divided, Partitions(8, 32)).verdict is OK
    assert doctor.judge_partitions(divided, Partitions(4, 16)).verdict is FAIL
    found = doctor.judge_partitions(Partitions(2, 8), Partitions(4, 16))
    assert found.verdict is FAIL
    assert "log.agents = 2" in found.remedy


@each(
    ("storage", "replicas", "verdict", "detail"),
    [
        ({"sync_always": True}, 1, OK, "survives a power cut"),
        ({"sync_interval": 1_000_000_000}, 1, WARN, "a power cut may lose the last 1 s"),
        ({"sync_interval": 120_000_000_000}, 3, WARN, "survives the loss of a server"),
        (None, 1, WARN, "cannot see how the broker flushes"),
        (None, 3, OK, "3 copies"),
    ],
)
def test_the_promise_that_holds_is_named(
    storage: dict[str, object] | None, replicas: int, verdict: Verdict, detail: str
) -> None:
    found = doctor.judge_sync(storage, replicas)
    assert found.verdict is verdict
    assert detail in found.detail


@each(("there", "verdict"), [(100.0, OK), (100.4, OK), (98.0, WARN), (150.0, FAIL), (None, WARN)])
def test_clocks_apart_are_told(there: float | None, verdict: Verdict) -> None:
    assert doctor.judge_clock(there, 100.0).verdict is verdict


@each(("pending", "verdict"), [([], OK), ([0, 5], OK), ([0, 5_000], WARN)])
def test_the_slowest_reader_counts(pending: list[int], verdict: Verdict) -> None:
    assert doctor.judge_readers(pending).verdict is verdict


def test_a_durable_consumer_that_somebody_left_is_no_lack_of_workers() -> None:
    assert doctor.judge_readers([0, 5], {"alerts": 5}).verdict is OK
    found = doctor.judge_readers([0, 5], {"alerts": 5_000, "pager": 0})
    assert (found.verdict, found.detail.partition("; ")[2]) == (
        WARN,
        "not of the set, and behind: alerts 5,000 messages",
    )
    assert "--processes" not in found.remedy


def test_an_actor_that_nobody_runs_fails_with_the_command_to_run() -> None:
    assert doctor.judge_workers(("clock", "router"), [("clock",), ("router",)]).verdict is OK
    found = doctor.judge_workers(("clock", "router"), [("clock",)])
    assert (found.verdict, found.detail) == (FAIL, "nobody runs router")
    assert "neuraxis worker router" in found.remedy


@each(("position", "verdict"), [(100, OK), (None, WARN), (0, OK), ("damaged", FAIL), (101, FAIL)])
def test_the_ledger_is_measured_against_the_stream(position: int | str | None, verdict: Verdict) -> None:
    assert doctor.judge_ledger(Path("ledger.db"), position, 100).verdict is verdict
    assert doctor.judge_ledger(Path("ledger.db"), 1, 100_000).verdict is WARN


@each(
    ("health", "verdict"),
    [
        (LedgerHealth(position=100_000), OK),
        (LedgerHealth(position=100_001), FAIL),
        (LedgerHealth(position=1), WARN),
        (LedgerHealth(position=-1, trouble=NO_LEDGER), WARN),
        (LedgerHealth(position=100_000, trouble="the disk is full: make room"), FAIL),
    ],
)
def test_the_ledger_of_a_broker_that_is_named_is_measured_by_its_process(
    health: LedgerHealth, verdict: Verdict
) -> None:
    found = doctor.judge_ledger_process(health, 100_000)
    assert found.verdict is verdict
    assert bool(found.remedy) is (verdict is not OK)


def test_a_trimmed_stream_whose_ledger_nobody_writes_fails() -> None:
    nobody = LedgerHealth(position=-1, trouble=NO_LEDGER)
    found = doctor.judge_ledger_process(nobody, 20, 10)
    assert found.verdict is FAIL
    assert "alone has the events up to sequence 10" in found.detail
    assert "do not begin another" in found.remedy
    assert doctor.judge_ledger_process(LedgerHealth(position=20), 20, 10).verdict is OK


def test_a_doctor_of_a_broker_that_is_named_knows_what_was_trimmed(broker: Broker, tmp_path: Path) -> None:
    to_check = _set_to_examine(Target(tmp_path, broker.url, "", "", "", None, ()))

    async def judged() -> list[Verdict]:
        log = await JetStreamLog.connect(broker.url)
        try:
            return [(await doctor._ledger(log.connection, to_check, trimmed)).verdict for trimmed in (0, 10)]
        finally:
            await log.close()

    assert asyncio.run(judged()) == [WARN, FAIL]


def test_every_reader_is_looked_at_however_many_there_are(broker: Broker) -> None:
    async def examined() -> Finding:
        log = await JetStreamLog.connect(broker.url)
        try:
            for number in range(300):
                name, filter = f"c{number:03}", "log.>" if number >= 298 else "log.00.00.reflex.blocked"
                config = {"name": name, "ack_policy": "none", "filter_subject": filter}
                config |= {"durable_name": name} if number == 298 else {"inactive_threshold": 60 * 10**9}
                call = f"CONSUMER.CREATE.{log.stream}.{name}.{filter}"
                await log.connection.api(call, {"stream_name": log.stream, "config": config})
            for _ in range(2):
                await log.append([plain(*[record()] * 600)])
            return await doctor._consumers(log.connection, log.stream)
        finally:
            await log.close()

    found = asyncio.run(examined())
    assert (found.verdict, found.detail) == (WARN, "299 consumers, the slowest 1,200 messages behind")


def test_what_is_stored_while_the_doctor_looks_does_not_put_the_ledger_ahead(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A set that served failed: its ledger was held against where the stream had ended seconds before."""
    data, context = DataFolder(tmp_path / "data"), tmp_path / "admin.json"
    context.write_text(f'{{"url": "{broker.url}"}}')

    async def examined() -> Finding:
        log = await JetStreamLog.connect(broker.url)

        async def meanwhile(*given: Any) -> Finding:
            await log.append([plain(record()), plain(record()), plain(record()), plain(record())])
            return await examine_keys(*given)

        monkeypatch.setattr(doctor, "examine_keys", meanwhile)
        try:
            return next(found for found in await doctor.examine(patient) if found.check == "ledger")
        finally:
            await log.close()

    with data.locked():
        write(data.ledger, exchanges(1))
        place = {"nats_url": broker.url, "context": str(context), "stream": "NEURAXIS"}
        data.write(RunFile(pid=os.getpid(), started="", version="", **place))
        patient = _set_to_examine(Target(data.path, "", "", "", "", None, ()))
        found = asyncio.run(examined())
    assert (found.verdict, found.detail) == (OK, f"{data.ledger} is 0 events behind the stream's 4")


def test_processes_that_are_down_or_were_started_again_are_told() -> None:
    assert doctor.judge_processes(None).verdict is SKIP
    assert doctor.judge_processes(run_file(Status("broker", 2, True, 0))).verdict is OK
    assert doctor.judge_processes(run_file(Status("broker", 2, True, 3))).verdict is WARN
    assert doctor.judge_processes(run_file(Status("broker", 0, False, 3))).verdict is FAIL


@each(("free", "verdict"), [((50, 100), OK), ((5, 100), WARN), ((0, 100), FAIL), (None, SKIP)])
def test_a_disk_that_fills_up_is_told(free: tuple[int, int] | None, verdict: Verdict) -> None:
    bytes_of = None if free is None else (free[0] * 10**9, free[1] * 10**9)
    assert doctor.judge_disk(Path(".neuraxis"), bytes_of).verdict is verdict


@each(
    ("timestamp", "seconds"),
    [("2030-01-01T00:00:00.123456789Z", 1893456000.123456), ("2030-01-01T00:00:00Z", 1893456000.0), ("", None)],
)
def test_the_brokers_timestamps_are_read(timestamp: str, seconds: float | None) -> None:
    assert doctor._seconds(timestamp) == seconds


def test_the_receivers_examined_are_those_of_the_running_set_wherever_one_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "neuraxis.toml").write_text("[log]\nagents = 2\n")  # of somebody else
    data = DataFolder(tmp_path / "data")
    ops = Receiver(style="slack", url_env="OPS_WEBHOOK_URL")
    in_force = RunSettings(
        agents=8, sessions=32, receivers={"ops": ops}, effectors=("webhook",), key_file="key",
        replicas=3, alert_consumers=("pager",),
    )  # fmt: skip
    with data.locked():
        context = tmp_path / "admin.json"
        context.write_text('{"url": "nats://127.0.0.1:9"}')
        place = {"nats_url": "nats://127.0.0.1:9", "context": str(context), "stream": "NEURAXIS"}
        data.write(RunFile(pid=os.getpid(), started="", version="", in_force=in_force, **place))
        patient = _set_to_examine(Target(data.path, "", "", "", "", None, ()))
        other = _set_to_examine(Target(data.path, "", "", "", "", None, ("log.agents=3",)))
    assert patient.receivers == {"ops": ops}
    assert (patient.expected, patient.effectors, patient.key_file) == (Partitions(8, 32), ("webhook",), "key")
    assert (other.receivers, other.expected.agents) == ({}, 3)
    # So are the copies of the stream, and what its reader may have: a set that is as it should be failed by a default.
    assert (patient.replicas, other.replicas) == (3, 1)
    for examined, consumer in ((patient, "pager"), (other, "alerts")):
        allowed = examined.users["reader"].permissions.publish_allow
        assert [each for each in allowed if each.startswith("$JS.API.CONSUMER.INFO")] == [
            f"$JS.API.CONSUMER.INFO.NEURAXIS.{consumer}"
        ]


@each(
    ("http", "has_keys", "agent_per", "verdict"),
    [
        ("http://127.0.0.1:8642", False, "shared", OK),
        ("http://127.0.0.1:8642", True, "shared", WARN),  # as behind a reverse proxy
        ("http://127.0.0.1:8642", True, "user", OK),
        ("http://0.0.0.0:8642", True, "shared", WARN),
        ("", True, "shared", OK),
    ],
)
def test_an_agent_that_people_share_who_come_in_with_keys_is_warned_of(
    http: str, has_keys: bool, agent_per: AgentPer, verdict: Verdict
) -> None:
    place = RunSettings(agents=4, sessions=16, receivers={}, effectors=(), key_file="", agent_per=agent_per)
    run = msgspec.structs.replace(run_file(), http=http, in_force=place)
    assert doctor.judge_shared_agent(run, has_keys=has_keys).verdict is verdict


def test_a_set_says_what_it_was_started_with() -> None:
    given = {"webhook": {"receivers": {"ops": {"style": "slack", "url_env": "OPS_WEBHOOK_URL"}}}, "log": {"agents": 8}}
    given["gateway"] = {"limits": {"text_bytes": 9}}
    config = resolve(all_sections(), [Layer("test", given)])
    in_force = run_settings(config, ModelChoice(use=ModelInUse(backend="composer"), why=""))
    assert in_force.receivers["ops"].url_env == "OPS_WEBHOOK_URL"
    assert (in_force.agents, in_force.effectors) == (8, ("webhook",))
    assert (in_force.replicas, in_force.alert_consumers) == (1, ("alerts",))
    assert in_force.limits == config.gateway.limits
    assert config.gateway.limits.text_bytes == 9


def test_a_stage_is_needed_as_the_configuration_has_it_wherever_one_looks() -> None:
    required = "swarm.required=['reflex', 'breaker']"
    target = Target(Path(), "nats://127.0.0.1:9", "", "", "", None, (required,))
    needed = ("reflex", "breaker", "swarm", "alerts")
    assert _set_to_examine(target).stages == needed
    assert needed_by(target.config(more={"swarm": SwarmSettings})) == needed
    attached = ModelChoice(use=ModelInUse(backend="composer"), why="")
    assert run_settings(target.config(every_section=True), attached).stages == needed
