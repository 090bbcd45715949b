"""What CONTRIBUTING.md builds, built as it says in a copy of the project, passes the project's tests.

The tests share the copy, which has the guide's actor and its command, and takes the bytecode along: in each folder anew
Python and pytest would compile the whole project. A test that changes a file of it puts it back.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
STEP = re.compile(
    r"^\*\*\d\. .*?\*\*: `(?P<path>[^`]+\.py)`.*?^```python\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL
)
NOT_COPIED = shutil.ignore_patterns(".*_cache", ".hypothesis", ".venv", ".git", ".neuraxis")

OF_EVERY_ACTOR = (
    "tests/actors/greeter",
    "tests/actors/test_every_actor.py",
    "tests/actors/test_registry.py",
    "tests/actors/alerts/test_grouping.py",
    "tests/actors/webhook/test_receivers.py",
    "tests/schemas",
    "tests/deploy/test_lines.py",
    "tests/test_architecture.py",
)
"""The tests that a new actor is found by; no file is left out by its name."""

GUIDED = re.compile(
    r"^<!-- (?P<guide>field|command): (?P<path>\S+) -->\n```python\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL
)
IN_COMMANDS = re.compile(r"^<!-- command in COMMANDS -->\n```python\n(?P<line>.*?)^```$", re.MULTILINE | re.DOTALL)

OF_THE_ACTOR = ("schemas/vocabulary/greeter.py", "actors/greeter", "tests/actors/greeter")
OF_THE_COMMAND = ("deploy/cli/logs/sessions.py", "tests/deploy/cli/test_sessions.py")

OF_EVERY_COMMAND = ("tests/deploy/test_cli.py", "tests/deploy/cli/test_sessions.py")
OF_COMMANDS = "test_sessions or test_cli and (sessions or every or no_option or list_of_commands or loads_no_actor)"
"""Of those tests, the command's own and those that are written once for all commands."""

OF_IT_OR_OF_ALL = "not test_cli and (greeter or none_stopped or imports_point or not [)"
"""Of the tests that are written once for many, its own: the others run beside this one, on what this is a copy of."""


RAISED = re.compile(r"^<!-- behaviour 2: (?P<path>\S+) -->\n```python\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)

PLACE_OF_BEHAVIOUR = re.compile(r"Its actor gets `(?P<new>behaviour=\d+)`, behind `(?P<last>[^`]+)`")


def written_files(text: str) -> dict[str, str]:
    return {match["path"]: match["code"] for match in STEP.finditer(text)}


def run(folder: Path, *arguments: str, timeout_s: float = 300) -> str:
    """Run a module of the copy, whose processes import the copy wherever they run; return what it printed."""
    command = [sys.executable, "-m", *arguments]
    environment = os.environ | {"PYTHONPATH": str(folder), "HYPOTHESIS_PROFILE": "short"}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=timeout_s, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def run_tests(folder: Path, *arguments: str, timeout_s: float = 600) -> str:
    return run(folder, "pytest", "-p", "no:cacheprovider", "-q", *arguments, timeout_s=timeout_s)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project with the guide's actor and its command in it."""
    folder = tmp_path_factory.mktemp("contributed") / "project"
    shutil.copytree(ROOT, folder, ignore=NOT_COPIED)
    follow_the_guide(folder)
    run(folder, "tests.schemas.write_samples")
    return folder


def follow_the_guide(folder: Path) -> None:
    """Write the guide's actor and command, in place of what somebody who follows it has made of them so far."""
    files = written_files((ROOT / "CONTRIBUTING.md").read_text())
    assert set(files) == {
        "schemas/vocabulary/greeter.py",
        "actors/greeter/decider.py",
        "actors/greeter/__init__.py",
        "tests/actors/greeter/test_greeter.py",
    }
    commands = guided("command")
    assert set(commands) == set(OF_THE_COMMAND)
    for place in (*OF_THE_ACTOR, *OF_THE_COMMAND):
        if (folder / place).is_dir():
            shutil.rmtree(folder / place)
        else:
            (folder / place).unlink(missing_ok=True)
    for sample in folder.glob("tests/schemas/samples/forged_id.greeter.*"):
        sample.unlink()
    for path, code in (files | commands).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(code)
    listed, before = folder / "deploy/cli/__init__.py", '    "backup": '
    (line,) = [match["line"] for match in IN_COMMANDS.finditer((ROOT / "CONTRIBUTING.md").read_text())]
    text = listed.read_text().replace(line, "")
    assert text.count(before) == 1
    listed.write_text(text.replace(before, line + before))


def test_who_has_followed_the_guide_gets_its_tests_all_the_same(tmp_path: Path) -> None:
    """They run in the tree of a contributor, too, who may have come to its last page."""
    (tmp_path / "deploy/cli").mkdir(parents=True)
    shutil.copy(ROOT / "deploy/cli/__init__.py", tmp_path / "deploy/cli")
    follow_the_guide(tmp_path)
    first = contents(tmp_path)
    raise_behaviour(tmp_path)
    (tmp_path / "tests/actors/greeter/test_words.py").touch()
    (tmp_path / "tests/schemas/samples").mkdir(parents=True)
    (tmp_path / "tests/schemas/samples/forged_id.greeter.session_begun.v1.json").touch()
    assert contents(tmp_path) != first
    follow_the_guide(tmp_path)
    assert contents(tmp_path) == first
    assert first[Path("deploy/cli/__init__.py")].count(b'"sessions": ') == 1


def test_no_other_test_counts_on_the_guides_actor_not_being_there() -> None:
    """Such a test fails for who follows the guide: one took an event of the greeter for that of an unknown actor."""
    others = [file for file in (ROOT / "tests").rglob("*.py") if ROOT / "tests/actors/greeter" not in file.parents]
    assert [file.name for file in others if "greeter" in file.read_text().lower()] == [Path(__file__).name]


def contents(folder: Path) -> dict[Path, bytes]:
    return {file.relative_to(folder): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.fixture
def changing(project: Path) -> Iterator[Path]:
    """The same, to be changed where the actor is: afterwards it is as it was."""
    places = [project / place for place in OF_THE_ACTOR]
    before = {file: file.read_bytes() for place in places for file in [place, *place.rglob("*.py")] if file.is_file()}
    yield project
    for file in (file for place in places for file in place.rglob("*.py") if file not in before):
        file.unlink()
    for file, content in before.items():
        file.write_bytes(content)


def test_the_actor_and_the_command_of_the_guide_pass_the_tests_of_all_and_of_the_catalogue(project: Path) -> None:
    """In one process: another would load the whole project once more."""
    run_tests(project, *OF_EVERY_ACTOR, *OF_EVERY_COMMAND, "-k", f"{OF_IT_OR_OF_ALL} or {OF_COMMANDS}")


def test_the_actor_and_the_command_of_the_guide_are_typed_and_formatted(project: Path) -> None:
    own = (*OF_THE_ACTOR, *OF_THE_COMMAND)
    run(project, "mypy", "--no-incremental", *OF_THE_ACTOR[:2], OF_THE_COMMAND[0])
    run(project, "ruff", "check", "--no-cache", *own, "deploy/cli/__init__.py")
    run(project, "ruff", "format", "--no-cache", "--check", *own, "deploy/cli/__init__.py")


def test_the_field_of_the_guide_is_decided_and_a_log_of_before_it_verifies(changing: Path) -> None:
    files = guided("field")
    assert set(files) == {
        "schemas/vocabulary/greeter.py",
        "actors/greeter/decider.py",
        "tests/actors/greeter/test_words.py",
    }
    replace_definition(changing / "schemas/vocabulary/greeter.py", files["schemas/vocabulary/greeter.py"])
    replace_definition(changing / "actors/greeter/decider.py", files["actors/greeter/decider.py"])
    (changing / "tests/actors/greeter/test_words.py").write_text(files["tests/actors/greeter/test_words.py"])
    run_tests(
        changing, "tests/actors/greeter/test_words.py", "tests/schemas/test_catalogue.py", "-k", "words or greeter"
    )
    run(changing, "ruff", "check", "--no-cache", *OF_THE_ACTOR)
    run(changing, "ruff", "format", "--no-cache", "--check", *OF_THE_ACTOR)


def guided(guide: str) -> dict[str, str]:
    """Return the files of one of the guides in CONTRIBUTING.md."""
    found = GUIDED.finditer((ROOT / "CONTRIBUTING.md").read_text())
    return {match["path"]: match["code"] for match in found if match["guide"] == guide}


def replace_definition(file: Path, code: str) -> None:
    """Put a function or class of the guide in the place of the one of its name."""
    head = code.partition("(")[0]
    text = file.read_text()
    begin = text.index(head)
    end = re.compile(r"^\S", re.MULTILINE)
    after = end.search(text, begin + len(head) + text[begin + len(head) :].index("\n"))
    assert after is not None
    file.write_text(f"{text[:begin]}{code}\n\n{text[after.start() :]}")


def test_both_behaviours_of_the_guide_are_decided(changing: Path) -> None:
    raise_behaviour(changing)
    assert "behaviour_1" in run_tests(changing, "-rA", "tests/actors/greeter")


@pytest.mark.faults
def test_the_whole_suite_passes_with_what_the_guide_builds(project: Path) -> None:
    run_tests(project, "--numprocesses", "2", timeout_s=3_600)


def raise_behaviour(folder: Path) -> None:
    """Change what the actor decides, as the guide says."""
    raised = {match["path"]: match["code"] for match in RAISED.finditer((ROOT / "CONTRIBUTING.md").read_text())}
    assert set(raised) == {"actors/greeter/decider.py", "tests/actors/greeter/test_behaviours.py"}
    decider = folder / "actors/greeter/decider.py"
    before = decider.read_text()
    decider.write_text(before[: before.index("def decide")] + raised["actors/greeter/decider.py"])
    (folder / "tests/actors/greeter/test_behaviours.py").write_text(raised["tests/actors/greeter/test_behaviours.py"])
    actor, place = (
        folder / "actors/greeter/__init__.py",
        PLACE_OF_BEHAVIOUR.search((ROOT / "CONTRIBUTING.md").read_text()),
    )
    assert place is not None
    last = f"    {place['last']},\n"
    assert last in actor.read_text()
    actor.write_text(actor.read_text().replace(last, f"{last}    {place['new']},\n"))
