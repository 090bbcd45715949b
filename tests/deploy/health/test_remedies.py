"""Every check of the doctor that is not well says what to do, in words that a newcomer can follow."""

import ast
from collections.abc import Iterator
from pathlib import Path

import deploy
from deploy.health import doctor
from deploy.health.findings import Finding, Verdict
from deploy.health.gateway_check import judge_gateway
from deploy.health.model_check import judge_model
from deploy.health.readiness import NO_LEDGER, LedgerHealth
from deploy.processes.running_set import ModelInUse
from deploy.processes.supervising.supervisor import Status
from tests.deploy.health.test_doctor import run_file
from tests.each import each

EMPTY_WORDS = ("see the message", "another user", "see the log of `neuraxis up`")


def findings() -> Iterator[Finding]:
    """A failing finding of each kind that has no live process behind it."""
    yield doctor.judge_ledger(Path("ledger.db"), "ledger.db: a row is damaged", 10)
    yield doctor.judge_ledger(Path("ledger.db"), 20, 10)
    yield doctor.judge_ledger(Path("ledger.db"), None, 20, 10)
    yield doctor.judge_ledger_process(LedgerHealth(position=20), 10)
    yield doctor.judge_ledger_process(LedgerHealth(position=0), 100_000)
    yield doctor.judge_ledger_process(LedgerHealth(position=-1, trouble=NO_LEDGER), 10)
    yield doctor.judge_ledger_process(LedgerHealth(position=-1, trouble=NO_LEDGER), 20, 10)
    yield doctor.judge_ledger_process(LedgerHealth(position=20, trouble="the disk is full"), 20)
    yield doctor.judge_processes(run_file(Status("gateway", 1, False, 0)))
    yield doctor.judge_processes(run_file(Status("gateway", 1, True, 2)))
    for check in (
        "http",
        "log",
        "storing",
        "ledger",
        "resources",
        "stages",
        "guardrails",
        "judgements",
        "of one's own",
    ):
        yield judge_gateway("http://127.0.0.1:1", 503, {check: "wrong"})
    yield judge_model(ModelInUse(backend="openai", base_url="http://127.0.0.1:1", models=("a",)), "no answer")


@each("found", list(findings()), named=lambda found: f"{found.check} {found.detail}"[:60])
def test_what_is_not_well_says_what_to_do(found: Finding) -> None:
    assert found.verdict in (Verdict.WARN, Verdict.FAIL)
    assert len(found.remedy.split()) > 3
    assert not any(words in found.remedy for words in EMPTY_WORDS)
    assert found.remedy not in found.detail


def test_no_finding_of_the_doctor_is_left_without_a_remedy() -> None:
    for module in sorted(Path(deploy.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(module.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Finding":
                bad = any(isinstance(each, ast.Attribute) and each.attr in ("WARN", "FAIL") for each in node.args)
                assert not bad or len(node.args) == 4, f"{module.name}:{node.lineno}"
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                assert node.value not in EMPTY_WORDS, f"{module.name}:{node.lineno}"
