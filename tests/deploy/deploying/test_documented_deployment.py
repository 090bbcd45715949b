"""What docs/deploy-processes.md says of groups, secrets and times, and the commands that it shows."""

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from deploy.cli import main
from deploy.deploying.groups import default_groups
from deploy.deploying.helm import DRAIN_S
from deploy.deploying.plan import GRACE_S, WATCHDOG_S, deployment_of
from deploy.processes.supervising.stopping import STOP_DEADLINE
from neuraxis_server.probe import STUCK_AFTER_S
from tests.deploy.deploying.test_groups import MODEL, RECEIVER, configured

PAGE = (Path(__file__).parents[3] / "docs" / "deploy-processes.md").read_text()
PROSE = " ".join(PAGE.split())


def test_the_table_has_the_default_groups() -> None:
    rows = dict(re.findall(r"^\| `([a-z]+)` \| (.*) \| \d+ \|$", PAGE, re.MULTILINE))
    copies = re.findall(r"^\| `([a-z]+)` \| .* \| (\d+) \|$", PAGE, re.MULTILINE)
    groups = default_groups(configured(MODEL, RECEIVER))
    assert [(group.name, str(group.replicas)) for group in groups] == copies
    for group in groups:
        told = rows[group.name]
        assert told == "every other actor" or all(host in told for host in group.hosted), group


def test_the_command_for_logins_names_the_default_groups() -> None:
    config = configured()
    groups = default_groups(config)
    deployment = deployment_of(config, groups, configuration=b"", version="1", logins=Path("absent"))
    [command] = re.findall(r"^neuraxis deploy nats-conf .*?(?=\n```)", PAGE, re.MULTILINE | re.DOTALL)
    words = shlex.split(command.replace("\\\n", " "))
    assert [f"--login {word}" for word in words if "=" in word] == list(deployment.logins)


def test_the_times_are_those_of_the_code() -> None:
    for told in (
        f"turned in the last {STUCK_AFTER_S:g} seconds",
        f"within {STOP_DEADLINE:g} seconds",
        f"The files give it {GRACE_S} before it is killed",
        f"the watchdog ({WATCHDOG_S} seconds)",
        f"serves {DRAIN_S} seconds more",
    ):
        assert told in PROSE


def test_its_commands_run_in_the_order_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of neuraxis; what other programs do with the files is tested where these are installed."""
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    commands = [line for block in blocks for line in block.splitlines() if line.startswith("neuraxis ")]
    assert len(commands) >= 5
    for command in commands:
        told = CliRunner().invoke(main, shlex.split(command)[1:])
        assert told.exit_code == 0, f"{command}: {told.stderr}"
    assert {"compose.yaml", "chart", "etc", "kustomization.yaml", "secrets"} <= {
        each.name for each in (tmp_path / "deployment").iterdir()
    }
