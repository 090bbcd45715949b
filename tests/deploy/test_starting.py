"""``neuraxis`` beside other people's packages of the same names, by PYTHONPATH and in the working folder."""

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest

from neuraxis_server import for_children, ordered
from tests.each import each
from tests.fixtures import FOLDER

ROOT = Path(__file__).parents[2]
NAMES = ("schemas", "events", "actors", "deploy", "bench", "click", "msgspec")
THEIRS = "this package is somebody else's"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A user's project, in which each of our names is taken."""
    for name in NAMES:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"raise ImportError({THEIRS!r})\n")
    return tmp_path


def installed(folder: Path) -> list[str]:
    """The command as an installer writes it."""
    entry = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]["neuraxis"]
    module, _, function = entry.partition(":")
    script = folder / "bin" / "neuraxis"
    script.parent.mkdir()
    script.write_text(
        f"import sys\nfrom {module} import {function}\nif __name__ == '__main__':\n    sys.exit({function}())\n"
    )
    return [sys.executable, str(script)]


def run(project: Path, command: Sequence[str], **more: str) -> "subprocess.CompletedProcess[str]":
    path = os.pathsep.join([str(project), *filter(None, [os.environ.get("PYTHONPATH")])])
    given = {**os.environ, "PYTHONPATH": path, **more}
    return subprocess.run(command, cwd=project, env=given, capture_output=True, text=True, timeout=120, check=False)


def test_the_command_and_the_processes_that_it_spawns_find_their_own_packages(project: Path) -> None:
    bundle, few = str(max(FOLDER.glob("*.nxb"))), ("--actor", "reflex", "--to", "100")
    done = run(project, [*installed(project), "replay", "--jobs", "2", "--log", bundle, *few])
    assert done.returncode == 0, done.stderr
    assert "reflex" in done.stdout


def test_as_a_module_it_does_too_and_so_does_every_process_that_it_starts(project: Path) -> None:
    told = run(project, [sys.executable, "-P", "-m", "neuraxis_server", "schema", "subjects"])
    assert (told.returncode, "forged_id.reflex.blocked" in told.stdout) == (0, True), told.stderr
    given = for_children(ordered([str(project), *sys.path], str(ROOT), [str(project)]), str(ROOT))
    again = run(project, [sys.executable, "-m", "deploy.cli", "schema", "subjects"], **given)
    assert (again.returncode, again.stdout) == (0, told.stdout), again.stderr


@pytest.mark.parametrize("encoding", ["latin-1", "ascii"])
def test_what_a_terminal_has_no_characters_for_is_written_by_their_numbers(encoding: str, project: Path) -> None:
    bundle = str(max(FOLDER.glob("*.nxb")))
    command = [sys.executable, "-P", "-m", "neuraxis_server", "why", "last", "--log", bundle]
    told = run(project, command, PYTHONIOENCODING=encoding)
    assert (told.returncode, told.stderr) == (0, "")
    assert "\\u2193 follows from the event above it" in told.stdout
    as_json = run(project, [*command, "--json"], PYTHONIOENCODING=encoding)
    assert json.loads(as_json.stdout) == json.loads(run(project, [*command, "--json"], PYTHONIOENCODING="utf-8").stdout)


@pytest.mark.parametrize(
    "cut_off", ["deploy.cli.wrapped_lines", "asyncio.locks"], ids=["the start", "a command's module"]
)
def test_ctrl_c_during_an_import_ends_a_command_by_one_line(cut_off: str, project: Path) -> None:
    (project / "sitecustomize.py").write_text(
        "import sys\n"
        "class Finder:\n"
        "    def find_spec(self, name, *rest):\n"
        f"        if name == {cut_off!r}:\n"
        "            sys.meta_path.remove(self)\n"
        "            raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Finder())\n"
    )
    told = run(project, [sys.executable, "-P", "-m", "neuraxis_server", "ask", "Hello"])
    assert (told.returncode, told.stderr, told.stdout) == (130, "\nneuraxis: interrupted\n", "")


@each(
    ("path", "home", "added", "expected"),
    [
        (
            ["/env/bin", "/theirs", "/lib/python3.11", "/env/site-packages"], "/env/site-packages", ["/theirs"],
            ["/env/bin", "/lib/python3.11", "/env/site-packages", "/theirs"],
        ),
        (
            ["/env/bin", "/theirs", "/lib/python3.11", "/env/site-packages", "/checkout"], "/checkout", ["/theirs"],
            ["/env/bin", "/lib/python3.11", "/checkout", "/env/site-packages", "/theirs"],
        ),
        (["/checkout", "/lib/python3.11"], "/checkout", ["/checkout", ""], ["/lib/python3.11", "/checkout"]),
        (
            ["/home", "/env/site-packages", "/theirs", "/lib/python3.11"], "/home",
            ["/home", "/env/site-packages", "/theirs"],
            ["/lib/python3.11", "/home", "/env/site-packages", "/theirs"],
        ),
    ],
    named=["installed", "a checkout", "a checkout that PYTHONPATH names", "a process that was started so"],
)  # fmt: skip
def test_what_is_ours_comes_before_what_is_installed_and_what_was_added_last(
    path: list[str], home: str, added: list[str], expected: list[str]
) -> None:
    assert ordered(path, home, added) == expected
