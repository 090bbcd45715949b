"""Deployments acted out: the files are written, everything is started as they say, asked over HTTP, and stopped."""

import json
import signal
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner

from deploy.cli import main
from deploy.cli.deploying.nats_conf import nats_conf
from deploy.config.loading import all_sections, load
from deploy.deploying.groups import Group, default_groups
from tests.broker import nats_server
from tests.deploy.deploying.acting import PROGRAM, Started, services, units
from tests.deploy.deploying.written import deploy
from tests.deploy.waiting import until
from tests.ports import free_port

SMALL = ("everything=all",)
"""The groups of the short form: one worker, the ledger, the gateway."""

QUESTIONS = 8

pytestmark = pytest.mark.skipif(
    not any("--out" in option.opts for option in nats_conf.params), reason="`deploy nats-conf` writes no files yet"
)


class Deployment:
    """A folder with the files of a deployment, its broker, and its processes."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder = folder
        self.stack = stack
        self.http = f"http://127.0.0.1:{free_port()}"
        self.key = ""
        self.processes: list[Started] = []

    def write(self, kind: str, groups: tuple[str, ...]) -> None:
        """Write the broker's files, a key, and the files of ``kind``, as the documentation has it."""
        told = self.run("keys", "add", "--scope", "ask", "--data", f"{self.folder}/secrets", "--json")
        self.key = json.loads(told)["key"]
        logins = ["everything=all"] if groups else [f"{each.name}={','.join(each.hosted)}" for each in _workers()]
        flags = [word for login in logins for word in ("--login", login)]
        at = ["--at", f"{self.folder}/broker-1", "--store", f"{self.folder}/store"]
        host = f"127.0.0.1:{free_port()}"
        self.run("deploy", "nats-conf", "--out", str(self.folder), "--hosts", host, *at, *flags)
        with (self.folder / "neuraxis.toml").open("a") as settings:
            settings.write(f'[gateway]\nhttp = "127.0.0.1:{self.http.rpartition(":")[2]}"\n')
        more = [word for group in groups for word in ("--group", group)]
        more += ["--program", str(PROGRAM)] if kind == "systemd" else []
        told = deploy(kind, "--out", str(self.folder), *more)
        assert (told.exit_code, told.stderr) == (0, ""), "every login and secret is there"

    def serve(self) -> None:
        """Start the broker, and make the streams."""
        configuration = str(self.folder / "broker-1" / "nats-server.conf")
        subprocess.run([nats_server(), "-t", "-c", configuration], check=True, capture_output=True)
        with (self.folder / "broker.log").open("wb") as output:
            broker = subprocess.Popen([nats_server(), "-c", configuration], stdout=output, stderr=output)
        self.stack.callback(broker.wait)
        self.stack.callback(broker.kill)
        until(lambda: b"Server is ready" in (self.folder / "broker.log").read_bytes(), "the broker is ready")
        self.run("deploy", "streams", *self.reach("admin"))

    def reach(self, login: str) -> tuple[str, ...]:
        """Return the flags by which a command reaches the deployment as a login."""
        return "--context", f"{self.folder}/logins/{login}.json", "--config", f"{self.folder}/neuraxis.toml"

    def run(self, *words: str) -> str:
        """Run a command of ``neuraxis``; it must succeed."""
        done = CliRunner().invoke(main, list(words))
        assert done.exit_code == 0, done.stderr
        return done.stdout

    def start(self, processes: Iterator[Started]) -> None:
        """Start everything, and wait until it is ready."""
        for process in processes:
            self.processes.append(process)
            self.stack.callback(process.kill)
            process.start()
        for process in self.processes:
            process.wait()
        until(lambda: httpx.get(f"{self.http}/readyz").status_code == 200, "every stage is served")

    def ask(self, number: int) -> int:
        """Ask a question over HTTP; return the status."""
        message = {"role": "user", "content": f"What is the capital of country number {number}?"}
        answer = httpx.post(
            f"{self.http}/v1/chat/completions",
            json={"model": "neuraxis", "messages": [message], "user": f"person-{number}"},
            headers={"Authorization": f"Bearer {self.key}"},
            timeout=90,
        )
        return answer.status_code

    def exchanges(self) -> tuple[list[str], list[str]]:
        """Return the exchanges that were accepted, and those that ended, sorted; what ended twice stands twice."""
        exported = self.run("log", "export", "-o", "-", *self.reach("operator"))
        rows = [json.loads(line) for line in exported.splitlines()]
        begun, ended = (
            sorted(row["exchange"] for row in rows if row["type"] == f"forged_id.{event}")
            for event in ("input.received", "response.emitted")
        )
        return begun, ended


def _workers() -> list[Group]:
    groups = default_groups(load(all_sections(), environment={}))
    return [group for group in groups if group.name not in ("ledger", "gateway")]


@pytest.mark.parametrize(
    ("kind", "groups"),
    [
        pytest.param("systemd", SMALL, id="systemd"),
        pytest.param("systemd", (), id="systemd with the default groups", marks=pytest.mark.faults),
        pytest.param("compose", SMALL, id="compose", marks=pytest.mark.faults),
        pytest.param("compose", (), id="compose with the default groups", marks=pytest.mark.faults),
    ],
)
def test_a_deployment_answers_and_stops_within_the_grace_period_and_nothing_is_lost(
    kind: str, groups: tuple[str, ...], tmp_path: Path
) -> None:
    with ExitStack() as stack:
        deployment = Deployment(tmp_path / "deployment", stack)
        deployment.folder.mkdir()
        deployment.write(kind, groups)
        deployment.serve()
        if kind == "systemd":
            for name in ("logins", "secrets"):
                (deployment.folder / name).rename(deployment.folder / "etc/neuraxis" / name)
                (deployment.folder / name).symlink_to(deployment.folder / "etc/neuraxis" / name)
            found = units(deployment.folder, tmp_path / "systemd", stack)
        else:
            found = services(deployment.folder, tmp_path / "containers")
        deployment.start(found)
        assert deployment.ask(0) == 200

        # The workers are told to stop while questions come in, and started again, as in a rolling restart.
        workers = [each for each in deployment.processes if "gateway" not in each.name]
        with ThreadPoolExecutor(QUESTIONS) as asking:
            answers = [asking.submit(deployment.ask, number) for number in range(1, QUESTIONS + 1)]
            until(lambda: any(answer.done() for answer in answers), "one is answered")
            for worker in workers:
                worker.tell(signal.SIGTERM)
            assert [worker.ended() for worker in workers] == [0] * len(workers)
            for worker in workers:
                worker.start()
            statuses = [answer.result() for answer in answers]
            assert 200 in statuses
            assert set(statuses) <= {200, 503, 504}, "a gateway that finds nobody to decide, or waits in vain, says so"

        for worker in workers:
            worker.wait()
        until(lambda: len(set(map(tuple, deployment.exchanges()))) == 1, "what was accepted has ended")
        for process in deployment.processes:
            process.tell(signal.SIGTERM)
        assert [process.ended() for process in deployment.processes] == [0] * len(deployment.processes)
        begun, ended = deployment.exchanges()
        assert statuses.count(200) < len(begun) <= QUESTIONS + 1
        assert len(set(begun)) == len(begun)
        assert ended == begun, "each input has one end"
