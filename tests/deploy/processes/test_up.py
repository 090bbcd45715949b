"""The whole set, as processes: brought up, hurt, and stopped."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest

from deploy.processes.broker_access import BrokerChoice, access_of
from deploy.processes.running_set import DataFolder
from events.jetstream import JetStreamLog
from schemas.catalogue import prefixes_of
from tests.actors.llm.scripted import in_background, says
from tests.broker import Broker
from tests.deploy.waiting import is_gone, until
from tests.forked import forked
from tests.full_disk import small_disk


def refusal(folder: Path, command: str, *flags: str) -> list[str]:
    """Return what a command says that does not start, since it is used wrongly."""
    given = {name: value for name, value in os.environ.items() if name not in ("NATS_URL", "NEURAXIS_LLM_URL")}
    done = forked((command, "--data", str(folder / "data"), *flags), folder=folder, environment=given, timeout=60)
    assert done.returncode == 2, done.stderr
    return done.stderr.splitlines()


class Up:
    """``neuraxis up`` in a folder of its own."""

    def __init__(self, folder: Path, *flags: str) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.output = folder / "up.log"
        self.ready_file = folder / "ready"
        decoy = folder / "deploy"  # people keep folders of this name where they work
        decoy.mkdir(exist_ok=True)
        (decoy / "__init__.py").write_text("raise RuntimeError('not the deploy that was meant')\n")
        environment = {
            name: value for name, value in os.environ.items() if name not in ("NATS_URL", "NEURAXIS_LLM_URL")
        }
        if "--llm" not in flags:  # an Ollama on somebody's machine is no part of these tests
            flags = (*flags, "--llm", "composer")
        if "--ready-file" not in flags:
            flags = (*flags, "--ready-file", str(self.ready_file))
        with self.output.open("ab") as output:
            self.process = subprocess.Popen(
                self.command("up", *flags),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=folder,
                env=environment,
            )

    def command(self, name: str, *arguments: str) -> list[str]:
        return [sys.executable, "-P", "-m", "deploy.cli", name, "--data", str(self.data), *arguments]

    def neuraxis(self, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        return forked((name, "--data", str(self.data), *arguments), folder=self.folder)

    def run_file(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.data / "run.json").read_text())
        return found

    def processes(self) -> dict[str, dict[str, Any]]:
        return {process["name"]: process for process in self.run_file()["processes"]}

    def are_back(self, before: Mapping[str, dict[str, Any]]) -> bool:
        """Whether each of these processes has another in its place, which is ready."""
        now = self.processes()
        return all(now[name]["ready"] and now[name]["pid"] != before[name]["pid"] for name in before)

    def until_ready(self) -> None:
        until(lambda: self.ready_file.exists() or self.process.poll() is not None, "the set is ready")
        assert self.process.poll() is None, self.output.read_text()

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(how)
        return self.process.wait(60)


@pytest.fixture(scope="module")
def sets() -> Iterator[list[Up]]:
    """The sets that tests of one set have started; the last of them may run still."""
    started: list[Up] = []
    yield started
    for each in started:
        each.process.kill()
        each.process.wait()


@pytest.fixture
def up(sets: list[Up], tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Up]:
    """A set that runs: the one before, unless that was ended, or the test before it failed and may have hurt it."""
    if not sets or sets[-1].process.poll() is not None:
        sets.append(Up(tmp_path_factory.mktemp("up")))
        sets[-1].until_ready()
    failed = request.session.testsfailed
    yield sets[-1]
    if request.session.testsfailed > failed:
        sets[-1].process.kill()
        sets[-1].process.wait()


ROOM = {"disk", "inodes", "memory"}
"""What the machine of a test may be short of."""


def test_a_set_comes_up_healthy_and_stops_in_order_leaving_nothing(up: Up) -> None:
    examined = up.neuraxis("doctor", "--json")
    findings = {row["check"]: row for row in map(json.loads, examined.stdout.splitlines())}
    assert examined.returncode == 0, examined.stdout
    assert {row["verdict"] for name, row in findings.items() if name not in ROOM} == {"ok", "n/a"}
    assert findings["durability"]["detail"] == "an acknowledged append survives a power cut"

    started = up.output.read_text()
    assert '"actors":' not in started.partition('"event":"set_ready"')[0].splitlines()[-1]
    assert "Neuraxis is up." in started
    assert f"  HTTP    {up.run_file()['http']}\n" in started
    assert f"neuraxis why last --data {up.data}" in started

    pids = [process["pid"] for process in up.processes().values()]
    assert up.stop(signal.SIGINT) == 0
    assert all(is_gone(pid) for pid in pids)
    assert not up.ready_file.exists()
    assert not (up.data / "run.json").exists()
    refused = up.neuraxis("doctor")
    assert refused.returncode == 3

    log = up.output.read_text()
    broker_log = (up.data / "broker" / "nats-server.log").read_text()
    assert "program_killed" not in log
    assert "Server Exiting" in broker_log, "the broker was stopped, not killed"


def test_a_second_set_in_the_folder_is_refused_and_named_the_first(up: Up) -> None:
    second = up.neuraxis("up")
    assert second.returncode == 2
    assert f"is in use by process {up.process.pid}" in second.stderr
    assert up.process.poll() is None


def test_killed_processes_come_back_at_the_same_address_and_the_set_goes_on(up: Up) -> None:
    url = up.run_file()["nats_url"]
    before = up.processes()
    for process in before.values():
        os.kill(process["pid"], signal.SIGKILL)

    until(lambda: up.are_back(before), "every process is back")
    assert up.run_file()["nats_url"] == url
    examined = up.neuraxis("doctor")
    assert examined.returncode == 0, examined.stdout
    assert "started again" in examined.stdout


def test_nothing_outlives_a_set_that_is_killed_and_the_next_one_starts_on_its_log(up: Up, sets: list[Up]) -> None:
    pids = [process["pid"] for process in up.processes().values()]
    url = up.run_file()["nats_url"]
    up.process.kill()
    up.process.wait()
    until(lambda: all(is_gone(pid) for pid in pids), "every child ends")
    assert "was killed" in up.neuraxis("doctor").stderr

    up.ready_file.unlink()
    sets.append(again := Up(up.folder))  # the set of the tests that follow
    again.until_ready()
    assert again.run_file()["nats_url"] == url
    assert asyncio.run(_last_sequence(again.data)) > 0


async def _last_sequence(data: Path) -> int:
    log = await JetStreamLog.connect(access_of(BrokerChoice(), DataFolder(data)), create=False)
    try:
        return (await log.info()).last_seq
    finally:
        await log.close()


def test_a_set_on_a_broker_of_ones_own_keeps_its_login_private_and_takes_it_away(
    tmp_path: Path, broker: Broker
) -> None:
    up = Up(tmp_path, "--nats", broker.url, "--processes", "2")
    try:
        up.until_ready()
        assert set(up.processes()) == {"deciders-1", "deciders-2", "gateway", "ledger"}
        assert up.run_file()["nats_url"] == broker.url
        login = up.data / "external.json"
        assert login.stat().st_mode & 0o077 == 0
        examined = up.neuraxis("doctor")
        assert examined.returncode == 0, examined.stdout
        assert "cannot see how the broker flushes" in examined.stdout
        assert up.stop() == 0
        assert not login.exists()
    finally:
        up.process.kill()
        up.process.wait()


def test_a_set_with_a_model_runs_the_effectors_has_the_actors_ask_it_and_tells_when_it_dies(tmp_path: Path) -> None:
    with in_background(says()) as endpoint:
        up = Up(tmp_path, "--llm", endpoint.base_url)
        try:
            up.until_ready()
            assert set(up.processes()) == {"broker", "deciders", "effectors", "gateway", "ledger"}
            model = up.run_file()["model"]
            assert (model["backend"], model["base_url"]) == ("openai", endpoint.base_url)
            assert model["models"] == ["qwen3:8b", "qwen3:4b"], "the one that is not there was replaced"
            examined = up.neuraxis("doctor", "--json")
            findings = {row["check"]: row for row in map(json.loads, examined.stdout.splitlines())}
            assert examined.returncode == 0, examined.stdout
            assert (findings["model"]["verdict"], findings["effectors"]["verdict"]) == ("ok", "ok")
            assert _recorded_settings(up, "router")["tiebreak"] == "llm"
            assert _recorded_settings(up, "responder")["backend"] == "llm"
            assert _recorded_settings(up, "arbiter")["deliberative_timeout_ms"] == 55_000
            effectors = up.processes()["effectors"]["pid"]
        except BaseException:
            up.process.kill()
            raise
    try:
        examined = up.neuraxis("doctor")
        assert (examined.returncode, "1 of" in examined.stderr) == (1, True), "the model has died"
        assert "model" in examined.stderr
        assert "does not list its models: endpoint unreachable (ConnectError)" in examined.stdout
        assert up.stop() == 0
        assert is_gone(effectors)
        assert "program_killed" not in up.output.read_text()
    finally:
        up.process.kill()
        up.process.wait()


def _recorded_settings(up: Up, actor: str) -> dict[str, Any]:
    """Return the settings that a partition of an actor decides with, from its own record of them."""

    async def look() -> dict[str, Any]:
        log = await JetStreamLog.connect(access_of(BrokerChoice(), DataFolder(up.data)), create=False)
        try:
            filters = [f"log.*.*.{prefixes_of(actor)[0]}.configured"]
            async for batch in log.history(filters, 0, (await log.info()).last_seq):
                found: dict[str, Any] = json.loads(batch[-1].data)["settings"]
                return found
            raise AssertionError(f"{actor} recorded no settings")
        finally:
            await log.close()

    return asyncio.run(look())


@pytest.mark.parametrize(
    ("word", "complaint"),
    [
        ("localhost:11434", "'localhost:11434' is not an address of an LLM endpoint: write http://HOST:PORT/v1"),
        ("https://me:secret@llm.example/v1", "holds a login: leave it out, and put the key in NEURAXIS_LLM_API_KEY"),
    ],
)
def test_a_model_that_cannot_be_meant_stops_the_set_before_it_starts(tmp_path: Path, word: str, complaint: str) -> None:
    said = refusal(tmp_path, "up", "--llm", word)
    assert any(complaint in line for line in said)
    assert not any("secret" in line for line in said)


def test_a_set_that_cannot_start_says_why_in_one_last_line(tmp_path: Path, broker: Broker) -> None:
    port = broker.url.rpartition(":")[2]
    last = refusal(tmp_path, "up", "--port", port, "--llm", "composer")[-1]
    assert last.startswith(f"neuraxis: port {port} is taken by another program")
    assert not (tmp_path / "data" / "run.json").exists()


def test_a_set_that_cannot_start_leaves_the_mark_of_the_one_that_was_killed_before_it(
    tmp_path: Path, broker: Broker
) -> None:
    left = tmp_path / "data" / "run.json"
    left.parent.mkdir()
    left.write_text("{}")
    refusal(tmp_path, "up", "--port", broker.url.rpartition(":")[2], "--llm", "composer")
    assert left.exists(), "the ledger may still lack the end of the log"


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--nats", "nats://127.0.0.1:9", "--port", "4222"), "--port: that is the embedded broker's, and another"),
        (("--nats", "nats://127.0.0.1:9", "--sync", "always"), "--sync: that is the embedded broker's"),
        (("--creds", __file__, "--tls-ca", __file__), "--creds and --tls-ca: that is for a broker of yours"),
        (("--config", "/dev/null"), "--config /dev/null is no ordinary file, and each process of a set reads it"),
    ],
)
def test_an_option_that_would_have_no_effect_stops_the_set_before_it_starts(
    tmp_path: Path, options: tuple[str, ...], complaint: str
) -> None:
    assert complaint in " ".join(refusal(tmp_path, "up", *options))


def test_a_taken_http_port_is_wrong_use_of_whichever_command_was_to_listen_there(
    tmp_path: Path, broker: Broker
) -> None:
    http = broker.url.removeprefix("nats://")
    for command, more in (("up", ("--llm", "composer")), ("gateway", ("--nats", broker.url))):
        last = refusal(tmp_path, command, "--http", http, *more)[-1]
        assert last.startswith(f"neuraxis: {http} is taken by another program: stop that one, or")


def test_a_ready_file_that_could_not_be_written_stops_the_set_before_it_starts(tmp_path: Path) -> None:
    missing = tmp_path / "missing" / "ready"
    [said] = refusal(tmp_path, "up", "--llm", "composer", "--ready-file", str(missing))
    assert said.startswith(f"neuraxis: --ready-file {missing}: its folder is missing")


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """A set that does otherwise than by default, each of which has a test; its ready file is on a disk that is full."""
    folder = tmp_path_factory.mktemp("odd")
    with small_disk(folder / "small", megabytes=1) as disk:
        disk.fill()
        odd = Up(
            folder, "--sync", "never", "--set", "runtime.event_loop=asyncio", "--ready-file", str(disk.folder / "ready")
        )
        try:
            until(lambda: "set_ready" in odd.output.read_text() or odd.process.poll() is not None, "the set is ready")
            yield odd
        finally:
            odd.process.kill()
            odd.process.wait()


def test_a_ready_file_on_a_disk_that_got_full_is_told_and_the_set_serves(odd: Up) -> None:
    assert odd.process.poll() is None, odd.output.read_text()
    assert "ready_file_not_written" in odd.output.read_text()
    assert json.loads(odd.neuraxis("ask", "Hello", "--json").stdout)["action"] == "EXECUTED"
    assert not (odd.folder / "small" / "ready").exists()


def test_a_run_to_throw_away_never_flushes_and_is_told_what_that_may_cost(odd: Up) -> None:
    costs = "an acknowledged append survives a crash of the broker, but a power cut may lose the whole log"
    assert costs in odd.output.read_text()
    findings = {row["check"]: row for row in map(json.loads, odd.neuraxis("doctor", "--json").stdout.splitlines())}
    assert (findings["durability"]["verdict"], findings["durability"]["detail"]) == ("warn", costs)


@pytest.mark.skipif(sys.platform != "linux", reason="it reads what processes have loaded from /proc")
@pytest.mark.parametrize(("name", "on_uvloop"), [("up", True), ("odd", False)])
def test_every_process_of_a_set_works_and_ends_in_order_on_either_loop(
    name: str, on_uvloop: bool, request: pytest.FixtureRequest
) -> None:
    running: Up = request.getfixturevalue(name)
    assert json.loads(running.neuraxis("ask", "What is the capital of Peru?", "--json").stdout)["response"]
    processes = running.processes()
    loaded = {name: "uvloop" in Path(f"/proc/{each['pid']}/maps").read_text() for name, each in processes.items()}
    assert loaded == {"broker": False, "deciders": on_uvloop, "gateway": on_uvloop, "ledger": on_uvloop}

    def ends() -> list[str]:
        lines = [line for line in running.output.read_text().splitlines() if '"program_restarts"' in line]
        return [json.loads(line)["cause"] for line in lines]

    before = len(ends())
    del processes["broker"]
    for each in processes.values():
        os.kill(each["pid"], signal.SIGTERM)
    until(lambda: running.are_back(processes), "the three are back")
    assert ends()[before:] == ["exit status 0"] * 3


def test_a_set_that_does_otherwise_than_by_default_stops_in_order(odd: Up) -> None:
    assert odd.stop() == 0


@pytest.mark.parametrize(
    ("setting", "complaint"),
    [
        ("router.weights.respond.bsae=1", "router: unknown router weight 'respond.bsae'"),
        ("drift.synthesis=llm", "neuraxis: drift.synthesis=llm (--set drift.synthesis) asks a language model"),
    ],
    ids=["that an actor refuses", "to ask a model where none is attached"],
)
def test_a_setting_that_cannot_be_meant_stops_the_set_before_it_starts(
    tmp_path: Path, setting: str, complaint: str
) -> None:
    assert complaint in refusal(tmp_path, "up", "--llm", "composer", "--set", setting)[-1]


def test_files_of_a_running_set_that_somebody_deletes_are_missed(up: Up) -> None:
    def readiness() -> tuple[int, str]:
        answer = httpx.get(f"{up.run_file()['http']}/readyz", timeout=20, trust_env=False)
        return answer.status_code, answer.text

    assert readiness()[0] == 200
    (up.data / "run.json").unlink()
    until((up.data / "run.json").exists, "it is found again")
    ledger = up.data / "ledger.db"
    before = ledger.stat().st_ino
    ledger.rename(up.data / "aside.db")
    until(lambda: ledger.exists() and ledger.stat().st_ino != before, "the ledger is written anew")
    verify = ("log", "verify", "--data", str(up.data))
    until(lambda: forked(verify, folder=up.folder).returncode == 0, "the new ledger holds the log, and verifies")
    assert readiness()[0] == 200
    shutil.rmtree(up.data / "broker" / "store")
    until(lambda: "the files of the broker's store are gone" in readiness()[1], "readiness tells of the store")
    assert readiness()[0] == 503
    examined = up.neuraxis("doctor", "--json")
    [storing] = [row for row in map(json.loads, examined.stdout.splitlines()) if row["check"] == "storing"]
    assert (examined.returncode, storing["verdict"]) == (1, "fail")
    assert "neuraxis log export" in storing["remedy"]
    until(lambda: "broker_store_gone" in up.output.read_text(), "the set's log tells of it")
    copying = ("log", "export", "--data", str(up.data), "--format", "bundle", "-o", str(up.folder / "log.nxb"))
    exported = forked(copying, folder=up.folder)
    assert exported.returncode == 0, exported.stderr
    assert up.stop() == 0
