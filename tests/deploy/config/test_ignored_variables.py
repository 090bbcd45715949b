"""Variables that look like ours and that nothing reads are said: whoever set one thinks that it has an effect."""

import re
from pathlib import Path

import pytest

from deploy.config.ignored_variables import READ_ELSEWHERE, ignored_variables
from deploy.config.loading import VARIABLES
from deploy.health.doctor import judge_variables
from deploy.health.findings import Verdict
from tests.each import each

ROOT = Path(__file__).parents[3]


@each("name", ["NEURAXIS_LOG_LEVEL", "NEURAXIS_PORT", "NEURAXIS_GATEWAY_UPSTREAM_URL", "neuraxis_llm_url", "NEURAXIS_"])
def test_a_variable_that_nothing_reads_is_named(name: str) -> None:
    assert ignored_variables({name: "8642", "PATH": "/bin"}) == (name,)
    [found] = judge_variables({name: "8642"})
    assert (found.check, found.verdict) == ("variables", Verdict.WARN)
    assert name in found.detail


@each("name", [*VARIABLES, *READ_ELSEWHERE, "NEURAXIS_ROUTER__PROFILE", "OTHER_LOG_LEVEL"])
def test_one_that_is_read_is_not(name: str) -> None:
    assert ignored_variables({name: "x"}) == ()
    assert judge_variables({name: "x"}) == []


def test_nor_are_those_that_kubernetes_sets_for_a_service() -> None:
    address = "tcp://10.0.0.1:8642"
    service = {
        "NEURAXIS_SERVICE_HOST": "10.0.0.1",
        "NEURAXIS_SERVICE_PORT": "8642",
        "NEURAXIS_SERVICE_PORT_HTTP": "8642",
        "NEURAXIS_PORT": address,
        "NEURAXIS_PORT_8642_TCP": address,
        "NEURAXIS_PORT_8642_TCP_PROTO": "tcp",
        "NEURAXIS_PORT_8642_TCP_PORT": "8642",
        "NEURAXIS_PORT_8642_TCP_ADDR": "10.0.0.1",
        "NEURAXIS_NATS_PORT": "udp://10.0.0.2:4222",
    }
    assert ignored_variables(service) == ()


def test_every_variable_that_the_product_reads_is_known() -> None:
    read = re.compile(r"""["'](NEURAXIS_[A-Z_]*[A-Z])["']""")
    files = [file for room in ("actors", "deploy", "events", "clients") for file in (ROOT / room).rglob("*.py")]
    found = {name for file in files for name in read.findall(file.read_text(encoding="utf-8"))}
    assert {"NEURAXIS_URL", "NEURAXIS_DEBUG", "NEURAXIS_LLM_URL"} <= found
    assert ignored_variables(dict.fromkeys(found, "x")) == ()


@pytest.mark.parametrize("rest", ["show", "show router"])
def test_the_configuration_that_is_shown_says_so(rest: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from click.testing import CliRunner

    from deploy.cli import main

    monkeypatch.chdir(tmp_path)
    shown = CliRunner().invoke(main, ["config", *rest.split()], env={"NEURAXIS_LOG_LEVEL": "loud"})
    assert shown.exit_code == 0
    assert "nothing reads NEURAXIS_LOG_LEVEL" in shown.stderr
    assert "NEURAXIS_LOG_LEVEL" not in shown.stdout
