"""The pytest plugin in projects of its users: found by its entry point, run by a pytest of their own."""

import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from events.log import Stored
from tests.deploy.replaying.test_log_copies import TALK, neuraxis
from tests.events.ledger.messages import write
from tests.events.recording import PARTITIONS
from tests.events.whatif.asking import live

ROOT = Path(__file__).parents[3]
PASSED, FAILED = 0, 1

OURS = ("hypothesispytest", "faker", "anyio", "xdist", "xdist.looponfail")
WITHOUT_OURS = [part for name in OURS for part in ("-p", f"no:{name}")]
"""A user's project has none of the plugins that this project is tested with, and loading them takes half the time."""


@pytest.fixture(scope="module")
def talk() -> list[Stored]:
    return live(TALK).log


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A user's project, and beside it what an installation of the package leaves in its environment."""
    installed = tmp_path / "site" / "neuraxis_installed-0.dist-info"
    installed.mkdir(parents=True)
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: neuraxis-installed\nVersion: 0\n")
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["pytest11"]
    entries = "\n".join(f"{name} = {module}" for name, module in declared.items())
    (installed / "entry_points.txt").write_text(f"[pytest11]\n{entries}\n")
    folder = tmp_path / "project"
    (folder / "decisions").mkdir(parents=True)
    (folder / "pytest.ini").write_text("[pytest]\n")
    return folder


def record(project: Path, log: list[Stored], *choice: str, folder: str = "decisions") -> None:
    write(project / "ledger.db", log, partitions=PARTITIONS)
    result = neuraxis("log", "record", "case", "--log", project / "ledger.db", "--folder", project / folder, *choice)
    assert result.exit_code == 0, result.output
    (project / "ledger.db").unlink()


def run_tests(project: Path) -> tuple[int, str]:
    """Run the project's tests; return the status and what was said."""
    path = os.pathsep.join([str(project.parent / "site"), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rA", *WITHOUT_OURS],
        cwd=project, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout


def changed(log: list[Stored], change: Callable[[dict[str, object]], object], exchange: str = "") -> list[Stored]:
    """Return a log in which the router's choices say something else."""

    def other(stored: Stored) -> Stored:
        if not stored.subject.endswith(".router.mode_selected") or exchange not in stored.headers["ce-exchange"]:
            return stored
        body = json.loads(stored.data)
        change(body)
        return msgspec.structs.replace(stored, data=msgspec.json.encode(body))

    return [other(stored) for stored in log]


def test_a_folder_of_older_weights_is_read_for_all_bundles_and_refused_where_it_holds_none(
    project: Path, talk: list[Stored]
):
    record(project, talk)
    (project / "pytest.ini").write_text("[pytest]\nneuraxis_models = march\n")
    (project / "march").mkdir()
    status, said = run_tests(project)
    assert (status, "march holds no weights" in said) == (FAILED, True), said
    shutil.copy(ROOT / "actors/appraisal/trust.npz", project / "march/trust-of-march.npz")
    assert run_tests(project)[0] == PASSED


def test_a_bundle_whose_decisions_hold_passes(project: Path, talk: list[Stored]):
    record(project, talk)
    status, said = run_tests(project)
    assert (status, "1 passed" in said) == (PASSED, True), said
    assert "decisions identical, 0 different" in said


def test_the_first_decision_that_changed_is_explained(project: Path, talk: list[Stored]):
    record(project, changed(talk, lambda body: body.update(router_confidence=0.123)))
    status, said = run_tests(project)
    assert status == FAILED
    assert "router/" in said
    assert "exchange-0" in said
    assert "0.123" in said


@pytest.mark.parametrize(("other", "status"), [("exchange-0", PASSED), ("exchange-1", FAILED)])
def test_a_bundle_recorded_for_exchanges_answers_for_them(project: Path, talk: list[Stored], other: str, status: int):
    record(project, changed(talk, lambda body: body.update(router_confidence=0.123), other), "--exchange", "exchange-1")
    assert run_tests(project)[0] == status


def test_settings_under_which_an_exchange_ends_otherwise_fail_with_the_numbers(project: Path, talk: list[Stored]):
    record(project, talk)
    (project / "pytest.ini").write_text("[pytest]\nneuraxis_config = neuraxis.toml\n")
    (project / "neuraxis.toml").write_text(
        "[broker]\nport = 4222\n[router.base_scores]\nRESPOND = 0.99\nCLARIFY = 0.0\n"
    )
    status, said = run_tests(project)
    assert status == FAILED
    assert "ends otherwise under neuraxis.toml" in said
    assert "of router at sequence" in said
    assert "router_confidence: 0." in said


def test_settings_that_change_no_end_pass(project: Path, talk: list[Stored]):
    record(project, talk)
    (project / "pytest.ini").write_text("[pytest]\nneuraxis_config = neuraxis.toml\n")
    (project / "neuraxis.toml").write_text("[memory]\nconcepts = 400\n")
    status, said = run_tests(project)
    assert (status, "4 exchanges, 0 changed" in said) == (PASSED, True), said


def test_a_configuration_that_is_wrong_is_told_without_a_traceback(project: Path, talk: list[Stored]):
    record(project, talk)
    (project / "pytest.ini").write_text("[pytest]\nneuraxis_config = missing.toml\n")
    status, said = run_tests(project)
    assert status == FAILED
    assert "there is no configuration file" in said
    assert "Traceback" not in said


def test_only_bundles_in_the_named_folders_are_tests(project: Path, talk: list[Stored]):
    record(project, talk)
    record(project, changed(talk, lambda body: body.update(router_confidence=0.123)), folder="elsewhere")
    (project / "pytest.ini").write_text("[pytest]\nneuraxis_bundles = decisions\n")
    status, said = run_tests(project)
    assert (status, "1 passed" in said) == (PASSED, True), said


def test_a_named_folder_that_holds_no_bundle_is_no_passed_suite(project: Path):
    (project / "test_own.py").write_text("def test_own():\n    pass\n")
    (project / "pytest.ini").write_text("[pytest]\nneuraxis_bundles = decisions\n")
    path = os.pathsep.join([str(project.parent / "site"), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"],
        cwd=project, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode != PASSED
    assert "which holds no bundle, so that no decision would be tested" in done.stderr


def test_a_suite_without_bundles_imports_nothing_of_the_project(project: Path):
    (project / "test_own.py").write_text(
        "import sys\n\ndef test_nothing_heavy():\n"
        "    assert 'deploy.pytest_plugin' in sys.modules\n"
        "    heavy = {'actors', 'events', 'schemas', 'msgspec', 'numpy', 'nats', 'structlog', 'rich', 'click'}\n"
        "    assert not heavy & set(sys.modules)\n"
    )
    status, said = run_tests(project)
    assert (status, "1 passed" in said) == (PASSED, True), said
