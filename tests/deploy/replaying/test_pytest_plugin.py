"""The client's pytest plugin in projects of its users: found by its entry point, run by a pytest of their own.

Every project has packages of its own by the names of ours. The server's command is run in the server's environment, and
imports its own.
"""

import json
import os
import shlex
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
CLIENT = ROOT / "clients" / "python"
SERVER = shlex.join([sys.executable, "-P", "-m", "neuraxis_server"])
PASSED, FAILED = 0, 1
NOT_NEEDED = [
    f"-pno:{name}"
    for name in (
        *("cacheprovider", "langsmith_plugin", "hypothesispytest", "schemathesis", "faker", "anyio", "platformdirs"),
        *("xdist", "xdist.looponfail"),
    )
]
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
    declared = tomllib.loads((CLIENT / "pyproject.toml").read_text())["project"]["entry-points"]["pytest11"]
    entries = "\n".join(f"{name} = {module}" for name, module in declared.items())
    (installed / "entry_points.txt").write_text(f"[pytest11]\n{entries}\n")
    folder = tmp_path / "project"
    (folder / "decisions").mkdir(parents=True)
    (folder / "pytest.ini").write_text("[pytest]\n")
    for name in ("deploy", "events", "schemas", "actors"):
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text("raise ImportError('this package is the project's')\n")
    return folder


def record(project: Path, log: list[Stored], *choice: str, folder: str = "decisions") -> None:
    write(project / "ledger.db", log, partitions=PARTITIONS)
    result = neuraxis("log", "record", "case", "--log", project / "ledger.db", "--folder", project / folder, *choice)
    assert result.exit_code == 0, result.output
    (project / "ledger.db").unlink()


def run_tests(project: Path, *options: str, server: str = SERVER) -> tuple[int, str]:
    """Run the project's tests, whose packages are found by PYTHONPATH too; return the status and what was said."""
    path = os.pathsep.join([str(project), str(project.parent / "site"), str(CLIENT / "src"), *_own_path()])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *NOT_NEEDED, "-rA", *options],
        cwd=project, env={**os.environ, "PYTHONPATH": path, "NEURAXIS_COMMAND": server}, capture_output=True, text=True,
        timeout=120, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def _own_path() -> list[str]:
    """Where this process itself was told to look, if anywhere."""
    return list(filter(None, [os.environ.get("PYTHONPATH")]))


def changed(log: list[Stored], change: Callable[[dict[str, object]], object], exchange: str = "") -> list[Stored]:
    """Return a log in which the router's choices say something else."""

    def other(stored: Stored) -> Stored:
        if not stored.subject.endswith(".router.mode_selected") or exchange not in stored.headers["ce-exchange"]:
            return stored
        body = json.loads(stored.data)
        change(body)
        return msgspec.structs.replace(stored, data=msgspec.json.encode(body))

    return [other(stored) for stored in log]


def verdict_on(project: Path, *options: str) -> tuple[int, dict[str, str]]:
    """What the server's command says of the project's bundle."""
    done = neuraxis("log", "test", project / "decisions" / "case.nxb", "--json", *options)
    return done.exit_code, json.loads(done.stdout)


def test_a_bundle_whose_decisions_hold_passes_and_the_first_that_changed_is_explained(
    project: Path, talk: list[Stored]
):
    record(project, talk)
    record(project, changed(talk, lambda body: body.update(router_confidence=0.123)), folder="decisions/changed")
    status, said = run_tests(project)
    assert (status, "1 failed, 1 passed" in said) == (FAILED, True), said
    assert "decisions identical, 0 different" in said
    for part in ("router/", "exchange-0", "0.123"):
        assert part in said
    assert "Traceback" not in said


def test_settings_and_older_weights_are_handed_to_the_server(project: Path, talk: list[Stored]):
    record(project, talk)
    (project / "pytest.ini").write_text("[pytest]\nneuraxis_config = neuraxis.toml\nneuraxis_models = march\n")
    (project / "neuraxis.toml").write_text("[router.base_scores]\nRESPOND = 0.99\nCLARIFY = 0.0\n")
    (project / "march").mkdir()
    status, said = run_tests(project)
    assert (status, "march holds no weights" in said) == (FAILED, True), said
    shutil.copy(ROOT / "actors/appraisal/trust.npz", project / "march/trust-of-march.npz")
    status, said = run_tests(project)
    assert (status, "ends otherwise under neuraxis.toml" in said) == (FAILED, True), said


def test_older_weights_change_nothing_for_decisions_that_do_not_rest_on_them(project: Path, talk: list[Stored]):
    record(project, talk)
    (project / "march").mkdir()
    shutil.copy(ROOT / "actors/appraisal/trust.npz", project / "march/trust-of-march.npz")
    assert verdict_on(project, "--models", str(project / "march"))[0] == PASSED


@pytest.mark.parametrize(("other", "status"), [("exchange-0", PASSED), ("exchange-1", FAILED)])
def test_a_bundle_recorded_for_exchanges_answers_for_them(project: Path, talk: list[Stored], other: str, status: int):
    record(project, changed(talk, lambda body: body.update(router_confidence=0.123), other), "--exchange", "exchange-1")
    assert verdict_on(project)[0] == status


def test_settings_under_which_an_exchange_ends_otherwise_fail_with_the_numbers(project: Path, talk: list[Stored]):
    record(project, talk)
    settings = project / "neuraxis.toml"
    settings.write_text("[broker]\nport = 4222\n[router.base_scores]\nRESPOND = 0.99\nCLARIFY = 0.0\n")
    status, told = verdict_on(project, "--config", str(settings))
    assert status == FAILED
    assert "ends otherwise under neuraxis.toml" in told["complaint"]
    assert "of router at sequence" in told["complaint"]
    assert "router_confidence: 0." in told["complaint"]
    settings.write_text("[memory]\nconcepts = 400\n")
    status, told = verdict_on(project, "--config", str(settings))
    assert (status, told["complaint"], "4 exchanges, 0 changed" in told["summary"]) == (PASSED, "", True)


def test_a_configuration_that_is_wrong_is_told_without_a_traceback(project: Path, talk: list[Stored]):
    record(project, talk)
    done = neuraxis("log", "test", project / "decisions" / "case.nxb", "--config", project / "missing.toml")
    assert (done.exit_code, "there is no configuration file" in done.stderr) == (2, True)


def test_only_bundles_in_the_named_folders_are_tests(project: Path, talk: list[Stored]):
    record(project, talk)
    record(project, changed(talk, lambda body: body.update(router_confidence=0.123)), folder="elsewhere")
    (project / "pytest.ini").write_text("[pytest]\nneuraxis_bundles = decisions\n")
    status, said = run_tests(project)
    assert (status, "1 passed" in said) == (PASSED, True), said


def test_a_named_folder_that_holds_no_bundle_is_no_passed_suite(project: Path):
    (project / "test_own.py").write_text("def test_own():\n    pass\n")
    (project / "pytest.ini").write_text("[pytest]\nneuraxis_bundles = decisions\n")
    status, said = run_tests(project)
    assert status != PASSED
    assert "which holds no bundle, so that no decision would be tested" in said


def with_bundles_aside(project: Path, option: str, folder: str) -> None:
    """Have a project name a folder of bundles in which its pytest does not look."""
    (project / folder).mkdir(parents=True, exist_ok=True)
    (project / folder / "case.nxb").touch()
    (project / "tests").mkdir()
    (project / "tests" / "test_own.py").write_text("def test_own():\n    pass\n")
    (project / "pytest.ini").write_text(f"[pytest]\nneuraxis_bundles = {folder}\n{option}\n")


@pytest.mark.parametrize(("option", "folder"), [("testpaths = tests", "decisions"), ("", "build/decisions")])
def test_a_named_folder_where_pytest_does_not_look_is_no_passed_suite(project: Path, option: str, folder: str):
    with_bundles_aside(project, option, folder)
    status, said = run_tests(project)
    assert status != PASSED
    assert "where pytest does not look, so that no decision would be tested" in said


@pytest.mark.parametrize(("option", "folder"), [("testpaths = tests", "decisions"), ("", "build/decisions")])
def test_whoever_says_what_is_to_run_gets_that(project: Path, option: str, folder: str):
    with_bundles_aside(project, option, folder)
    for said in ("tests", f"--ignore={folder}"):
        assert run_tests(project, said)[0] == PASSED


def test_a_named_folder_of_several_test_paths_is_tested(project: Path):
    (project / "decisions" / "case.nxb").touch()
    (project / "tests").mkdir()
    (project / "tests" / "test_own.py").write_text("def test_own():\n    pass\n")
    (project / "pytest.ini").write_text("[pytest]\nneuraxis_bundles = decisions\ntestpaths = tests decisions\n")
    status, said = run_tests(project)
    assert (status, "1 failed, 1 passed" in said) == (FAILED, True), said


def test_a_suite_without_bundles_loads_no_client_and_nothing_of_the_server(project: Path):
    (project / "test_own.py").write_text(
        "import sys\n\ndef test_nothing_heavy():\n"
        "    assert 'neuraxis_pytest' in sys.modules\n"
        "    heavy = {'actors', 'events', 'schemas', 'deploy', 'msgspec', 'numpy', 'nats', 'httpx', 'rich', 'click'}\n"
        "    assert not heavy & set(sys.modules)\n"
    )
    status, said = run_tests(project)
    assert (status, "1 passed" in said) == (PASSED, True), said


@pytest.mark.parametrize(
    ("server", "expected"),
    [
        ("./server/bin/neuraxis", "project/server/bin/neuraxis cannot be run"),
        (f"{sys.executable} -c 'import sys; sys.exit(\"neuraxis: no bundle\")'", "neuraxis: no bundle"),
    ],
)
def test_a_server_that_cannot_be_run_fails_the_bundles_and_says_what_to_do(project: Path, server: str, expected: str):
    (project / "decisions" / "case.nxb").touch()
    status, said = run_tests(project, server=server)
    assert (status, expected in said) == (FAILED, True), said
    assert "Traceback" not in said


def test_the_command_says_the_same_for_people_and_ends_with_a_status(project: Path, talk: list[Stored]):
    record(project, talk)
    record(project, changed(talk, lambda body: body.update(router_confidence=0.123)), folder="other")
    good, bad = project / "decisions" / "case.nxb", project / "other" / "case.nxb"
    told = neuraxis("log", "test", good, bad)
    assert told.exit_code == 1
    assert "decisions identical, 0 different" in told.stdout
    assert "router_confidence" in told.stdout
    assert "1 bundle of 2" in told.stderr
    alone = neuraxis("log", "test", good, "--json")
    assert (alone.exit_code, json.loads(alone.stdout)["ok"]) == (0, True)
    assert neuraxis("log", "test", project / "none.nxb").exit_code == 2
