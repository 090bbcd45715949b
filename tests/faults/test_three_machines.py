"""``docs/deploy.md``, section "Three machines", acted out as it is written, on machines that are namespaces."""

import json
import os
import re
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.machines import Machine, Switch, machines, refusal

PAGE = Path(__file__).parents[2] / "docs" / "deploy.md"
NAMES = ("one.example", "two.example", "three.example")
ENVIRONMENT = {
    "PATH": f"{sysconfig.get_path('scripts')}:{os.environ.get('PATH', '')}",
    "NEURAXIS_LLM_URL": "composer",
    "HOME": "/root",
}
LASTING = ("nats-server ", "neuraxis up ", "neuraxis worker ")
PATIENCE_S = 90.0
_ACT = re.compile(r"<!-- act: (?P<where>[\w. ]+) -->\n```sh\n(?P<line>.+)\n```")
_COPY = re.compile(r"^\| `(?P<to>\w+\.example)` \| `(?P<source>[^`]+)` \| `(?P<there>[^`]+)` \|$", re.MULTILINE)

pytestmark = [pytest.mark.faults, pytest.mark.skipif(bool(why := refusal()), reason=why)]


@pytest.fixture
def switch() -> Iterator[Switch]:
    with machines(NAMES) as made:
        yield made


def until_it_works(machine: Machine, line: str, folder: Path) -> str:
    """Run a command, again and again while what it needs is still starting; return what it prints."""
    end = time.monotonic() + PATIENCE_S
    while (done := machine.run(line, folder, ENVIRONMENT)).returncode:
        assert time.monotonic() < end, f"{machine.name}: {line}\n{done.stdout}{done.stderr}"
        time.sleep(0.5)
    return done.stdout


def test_three_machines_become_a_cluster_by_copying_files_and_five_commands(switch: Switch, tmp_path: Path) -> None:
    text = PAGE.read_text()
    acts = [(found["where"].split(), found["line"]) for found in _ACT.finditer(text)]
    *commands, asking = acts
    assert len(commands) == 5
    one = switch.machines["one.example"]

    for number, (where, line) in enumerate(commands):
        for name in where:
            if line.startswith(LASTING):
                switch.machines[name].start(line, tmp_path, ENVIRONMENT, tmp_path / f"{name}-{number}.log")
            else:
                until_it_works(switch.machines[name], line, tmp_path)
        if number == 0:
            for copy in _COPY.finditer(text):
                there = copy["there"]
                line = f"mkdir -p {Path(there).parent} && cp -r {copy['source']} {there}"
                assert switch.machines[copy["to"]].run(line, tmp_path, ENVIRONMENT).returncode == 0

    assert "Answered by the composer" in until_it_works(one, asking[1], tmp_path)
    doctor = "neuraxis doctor --config /etc/neuraxis/neuraxis.toml --context /etc/neuraxis/logins --json"
    end = time.monotonic() + PATIENCE_S
    while True:
        lines = one.run(doctor, tmp_path, ENVIRONMENT).stdout.splitlines()
        found = {finding["check"]: finding for finding in map(json.loads, lines)}
        if "workers" in found and found["workers"]["detail"].startswith("3 alive"):
            break
        assert time.monotonic() < end, found.get("workers")
        time.sleep(0.5)
    for check in ("rights", "servers", "durability", "copies", "settings", "stages"):
        assert found[check]["verdict"] == "ok", found[check]

    switch.cut("three.example")
    until_it_works(one, asking[1], tmp_path)
    switch.join("three.example")
    until_it_works(one, asking[1], tmp_path)
    verified = "neuraxis replay --verify --data /var/lib/neuraxis/set"
    until_it_works(one, verified, tmp_path)
