"""The rules of the house, checked on the source itself: who may import whom, and what may not be in a file."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import actors
from schemas.input_path import STAGE_OF
from tests.each import each

ROOT = Path(__file__).resolve().parent.parent
LAYERS = ("schemas", "events", "actors", "deploy")
"""Imports point from later ones to earlier ones."""

CLIENT = "clients/python/src"
PACKAGES = (*LAYERS, "neuraxis_server", CLIENT, "bench")
IMPURE = {
    "aiosqlite", "asyncio", "concurrent", "datetime", "getpass", "http", "httpx", "io", "locale", "logging",
    "multiprocessing", "nats", "openai", "os", "pathlib", "platform", "queue", "random", "secrets", "select",
    "shutil", "signal", "socket", "sqlite3", "ssl", "structlog", "subprocess", "sys", "tempfile", "threading",
    "time", "urllib", "uuid",
}  # fmt: skip
"""Clocks, randomness, input and output, environment: what a decision may not touch."""

FILE_READING = {"io", "pathlib"}
"""Allowed beside a decider, for data that is part of its package; a decider itself is handed what was read."""

PURE_LIBRARIES = {"immutables", "msgspec", "numpy"}
TEXT_FILES = {
    ".py",
    ".md",
    ".toml",
    ".yaml",
    ".yml",
    ".json",
    ".jsonl",
    ".conf",
    ".service",
    ".txt",
    ".html",
    ".js",
    ".css",
}
SWALLOWING = re.compile(r"\bexcept\b.*\bpass\b", re.DOTALL)
"""What a file has at least that swallows an error."""

MACHINE_PATH = re.compile(r"(?<![\w.:/])/(?:root|home|Users|work)/")


def sources(*folders: str) -> list[Path]:
    return [file for folder in folders for file in sorted((ROOT / folder).rglob("*.py"))]


def named(file: Path) -> str:
    return file.relative_to(ROOT).as_posix()


def tree_of(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"), named(file))


def module_of(file: Path) -> str:
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def imports_of(file: Path) -> tuple[str, ...]:
    """Return the absolute names of the modules (or members of modules) that a file imports, wherever in the file."""
    package = module_of(file) if file.name == "__init__.py" else module_of(file).rpartition(".")[0]
    found: list[str] = []
    for node in ast.walk(tree_of(file)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            module = ".".join([*above, *([node.module] if node.module else [])])
            found += [f"{module}.{alias.name}" for alias in node.names]
    return tuple(found)


def imports_at_run_time(file: Path) -> Iterator[ast.Call]:
    for node in ast.walk(tree_of(file)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {
            "__import__",
            "import_module",
            "importlib.import_module",
        }:
            yield node


def file_of(module: str) -> Path | None:
    """Return the project's file behind an imported name, which may be a member of a module."""
    while module:
        for candidate in (
            (ROOT / Path(*module.split("."))).with_suffix(".py"),
            ROOT / Path(*module.split("."), "__init__.py"),
        ):
            if candidate.exists():
                return candidate
        module = module.rpartition(".")[0]
    return None


def own_closure(file: Path) -> set[Path]:
    """Return a file and all files of the project that it imports, directly or not."""
    seen: set[Path] = set()
    waiting = [file]
    while waiting:
        current = waiting.pop()
        if current in seen:
            continue
        seen.add(current)
        found = (file_of(name) for name in imports_of(current) if name.split(".")[0] in LAYERS)
        waiting += [each for each in found if each is not None]
    return seen


def actor_of(file: Path) -> str:
    return file.relative_to(ROOT / "actors").parts[0]


DECIDERS = sorted((ROOT / "actors").glob("*/decider.py"))
each_decider = each("decider", DECIDERS, named=named)


@pytest.mark.parametrize("layer", LAYERS)
def test_imports_point_one_way(layer: str) -> None:
    later = {*LAYERS[LAYERS.index(layer) + 1 :], "bench", "tests"}
    wrong = [
        f"{named(file)}: {name}" for file in sources(layer) for name in imports_of(file) if name.split(".")[0] in later
    ]
    assert wrong == []


def test_the_client_imports_nothing_of_the_server_and_only_what_it_asks_for() -> None:
    allowed = {"neuraxis", "httpx", "nats", *sys.stdlib_module_names}
    found = {
        f"{named(file)}: {name}"
        for file in sources(CLIENT)
        for name in imports_of(file)
        if name.split(".")[0] not in allowed
    }
    # Logins with an nkey ask for its package by name.
    assert found == {f"{CLIENT}/neuraxis_pytest.py: pytest", f"{CLIENT}/neuraxis/nats_login.py: nkeys"}


def test_the_vocabulary_knows_nothing_of_brokers() -> None:
    foreign = {"nats", "aiosqlite", "sqlite3", "asyncio", "socket", "structlog"}
    wrong = [
        f"{named(file)}: {name}"
        for file in sources("schemas")
        for name in imports_of(file)
        if name.split(".")[0] in foreign
    ]
    assert wrong == []


def test_no_actor_imports_another() -> None:
    wrong = [
        f"{named(file)}: {name}"
        for file in sources("actors")
        if len(file.relative_to(ROOT / "actors").parts) > 1
        for name in imports_of(file)
        if name.startswith("actors.") and name.split(".")[1] not in {actor_of(file), *actors.SHARED}
    ]
    assert wrong == []


def test_what_actors_share_knows_no_actor() -> None:
    wrong = [
        f"{named(file)}: {name}"
        for shared in actors.SHARED
        for file in sources(f"actors/{shared}")
        for name in imports_of(file)
        if name.startswith("actors.") and name.split(".")[1] != shared
    ]
    assert wrong == []


@each_decider
def test_a_decider_imports_only_what_is_pure(decider: Path) -> None:
    allowed = {"schemas", *PURE_LIBRARIES, *(sys.stdlib_module_names - IMPURE)}
    own = f"actors.{actor_of(decider)}."
    own_or_contract = (own, "actors.contract.")
    wrong = [
        name
        for name in imports_of(decider)
        if name.split(".")[0] not in allowed and not name.startswith(own_or_contract)
    ]
    assert wrong == []


@each_decider
def test_what_a_decider_imports_of_its_actor_is_pure_too(decider: Path) -> None:
    own = {file for file in own_closure(decider) if file.is_relative_to(decider.parent)}
    wrong = [
        f"{named(file)}: {name}"
        for file in own
        for name in imports_of(file)
        if name.split(".")[0] in IMPURE - FILE_READING
    ]
    assert wrong == []


@each_decider
def test_a_decider_imports_nothing_at_run_time_and_reads_no_file(decider: Path) -> None:
    calls = [node for node in ast.walk(tree_of(decider)) if isinstance(node, ast.Call)]
    assert list(imports_at_run_time(decider)) == []
    assert [
        ast.unparse(call) for call in calls if ast.unparse(call.func) in {"open", "input", "print", "exec", "eval"}
    ] == []


@each_decider
def test_a_decider_keeps_no_state_outside_of_its_states(decider: Path) -> None:
    wrong = [ast.unparse(node) for node in ast.walk(tree_of(decider)) if isinstance(node, (ast.Global, ast.Nonlocal))]
    assert wrong == []


@each("package", PACKAGES)
def test_every_public_name_is_documented(package: str) -> None:
    assert [name for file in sources(package) for name in undocumented(file)] == []


def undocumented(file: Path) -> Iterator[str]:
    tree = tree_of(file)
    if tree.body and ast.get_docstring(tree) is None:
        yield f"{named(file)}: the module"
    for node in tree.body:
        yield from undocumented_below(node, named(file))


def undocumented_below(node: ast.stmt, where: str) -> Iterator[str]:
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) or node.name.startswith("_"):
        return
    if ast.get_docstring(node) is None and "overload" not in {ast.unparse(each) for each in node.decorator_list}:
        yield f"{where}: {node.name}"
    if isinstance(node, ast.ClassDef):
        for member in node.body:
            yield from undocumented_below(member, f"{where}: {node.name}")


def test_no_error_is_swallowed_whole() -> None:
    wrong = [
        f"{named(file)}:{node.lineno}"
        for file in sources(*PACKAGES, "tests")
        if SWALLOWING.search(file.read_text(encoding="utf-8"))  # parsing all files takes seconds
        for node in ast.walk(tree_of(file))
        if isinstance(node, ast.ExceptHandler)
        and all(isinstance(statement, ast.Pass) for statement in node.body)
        and (node.type is None or ast.unparse(node.type) in {"Exception", "BaseException"})
    ]
    assert wrong == []


def test_structlog_is_loaded_in_one_place() -> None:
    """``events/loggers.py`` keeps out what structlog would load beside it, as long as nobody was there before."""
    found = {
        named(file)
        for file in sources(*PACKAGES)
        if any(name.partition(".")[0] == "structlog" for name in imports_of(file))
    }
    assert found == {"events/loggers.py"}


def files_on_the_way_of(what: str) -> list[str]:
    """Return the files that CONTRIBUTING.md names on the way of an input or of a replay, in order."""
    (section,) = re.findall(
        rf"^## The way of one {what}\n(.*?)^## ", (ROOT / "CONTRIBUTING.md").read_text(), re.M | re.S
    )
    return re.findall(r"`([\w/]+\.py)`", section)


def test_every_file_on_the_ways_that_the_guide_tells_is_there() -> None:
    for what in ("input", "replay"):
        files = files_on_the_way_of(what)
        assert len(files) > 5
        assert [file for file in files if not (ROOT / file).is_file()] == [], what


def test_the_way_of_an_input_passes_the_actors_in_the_order_of_the_path() -> None:
    deciders = [f"actors/{actor}/decider.py" for actor in (*STAGE_OF, "guardrails", "responder")]
    assert [file for file in files_on_the_way_of("input") if file.endswith("/decider.py")] == deciders


def test_the_way_of_a_replay_decides_by_the_same_code_as_the_way_of_an_input() -> None:
    assert {"events/partition_fold.py", "events/make_decision.py"} <= {*files_on_the_way_of("input")} & {
        *files_on_the_way_of("replay")
    }


def test_no_file_names_a_place_on_somebody_s_machine() -> None:
    wrong = [
        f"{named(file)}:{number}: {line.strip()[:80]}"
        for file in text_files()
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        if MACHINE_PATH.search(line)
    ]
    assert wrong == []


def text_files() -> Iterator[Path]:
    for folder in (*PACKAGES, "clients", "tests", "docs"):
        for file in (ROOT / folder).rglob("*"):
            if file.is_file() and file.suffix in TEXT_FILES and "__pycache__" not in file.parts:
                yield file
    for name in (
        "README.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "Makefile",
        "pyproject.toml",
        "requirements.lock",
        ".ci/run",
    ):
        yield ROOT / name


def locked() -> dict[str, set[str]]:
    """Return the locked requirements, package -> versions (several where platforms differ)."""
    versions: dict[str, set[str]] = {}
    for line in (ROOT / "requirements.lock").read_text().splitlines():
        if line and not line.startswith((" ", "#")):
            requirement = Requirement(line.rstrip("\\ "))
            (specifier,) = requirement.specifier
            assert specifier.operator == "=="
            versions.setdefault(canonicalize_name(requirement.name), set()).add(specifier.version)
    return versions


def test_the_lock_file_names_no_host() -> None:
    text = (ROOT / "requirements.lock").read_text()
    assert [line for line in text.splitlines() if "://" in line or "index-url" in line or "find-links" in line] == []


def test_every_locked_package_has_hashes() -> None:
    blocks = re.split(r"\n(?=\S)", (ROOT / "requirements.lock").read_text().strip())
    assert [block for block in blocks if not block.startswith("#") and "--hash=sha256:" not in block] == []


def test_the_lock_file_covers_what_the_project_asks_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    asked = [Requirement(line) for line in (*project["dependencies"], *extras["dev"], *extras["examples"])]
    pinned = locked()
    wrong = [
        str(requirement)
        for requirement in asked
        if not any(
            requirement.specifier.contains(version) for version in pinned.get(canonicalize_name(requirement.name), ())
        )
    ]
    assert wrong == [], "make lock"


def test_every_dependency_has_its_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = [*project["dependencies"], *(line for extra in project["optional-dependencies"].values() for line in extra)]
    reasons = (ROOT / "docs" / "dependencies.md").read_text()
    names = [Requirement(line).name for line in lines]
    assert [name for name in names if f"`{name}`" not in reasons] == []
