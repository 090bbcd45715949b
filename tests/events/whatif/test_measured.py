"""A what-if names the changed settings that running processes measure with: what they measured is on record."""

import ast
import inspect
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType

import msgspec
import pytest

import actors
from actors.registry import ACTORS
from deploy.replaying.what_if_verdicts import complaint, measured_setting_warnings
from events.log import Stored
from schemas.settings.measured_settings import measured_settings
from tests.each import each
from tests.events.whatif.asking import live, whatif

MEASURES = "availability_events.py"
"""The module of an actor's package that is called by its shell with what was measured."""


@pytest.fixture(scope="module")
def log() -> Sequence[Stored]:
    return live([("noon", "Hello!")]).log


def named(tree: ast.AST) -> Iterator[str]:
    """What a module may read a setting by: as an attribute, or by its name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def methods(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    """The functions of a module of settings that yield one, not those that check them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name != "__post_init__":
            yield node


def read_in_decisions(package: Path) -> set[str]:
    found: set[str] = set()
    for module in package.rglob("*.py"):
        tree = ast.parse(module.read_text())
        if module.name == "settings.py":
            found.update(name for function in methods(tree) for name in named(function))
        elif module.name != MEASURES:
            found.update(named(tree))
    return found


def read_in_measuring(package: Path) -> set[str]:
    module = package / MEASURES
    tree = ast.parse(module.read_text() if module.exists() else "")
    return {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "settings"
    }


@each("name", sorted(ACTORS))
def test_every_setting_that_no_decision_reads_is_marked_as_measured_with_and_no_other(name: str) -> None:
    actor, package = ACTORS[name], folder_of(actors) / name
    marked = measured_settings(msgspec.to_builtins(actor.settings_type()), actor.settings_type)
    fields = {field.name for field in msgspec.structs.fields(actor.settings_type)}
    in_decisions, in_measuring = read_in_decisions(package), read_in_measuring(package)
    assert {path for path, reading in marked.items() if reading == "alone"} == fields - in_decisions
    assert {path for path, reading in marked.items() if reading == "too"} == fields & in_decisions & in_measuring


def folder_of(module: ModuleType) -> Path:
    return Path(inspect.getfile(module)).parent


def test_a_report_names_every_setting_of_which_the_change_shows_nothing(log: Sequence[Stored]) -> None:
    changes = {
        "swarm": {"owner_grace_ms": 1_000, "repeat_ms": 2_000, "required": ["router"]},
        "reflex": {"latency_budget_ms": 5.0},
        "router": {"act": False},
    }
    report = whatif(log, changes)
    assert report.measured == {
        "swarm.owner_grace_ms": "alone",
        "swarm.repeat_ms": "alone",
        "swarm.required": "too",
        "reflex.latency_budget_ms": "alone",
    }
    texts = list(measured_setting_warnings(report))
    assert [text.partition(" ")[0] for text in texts] == list(report.measured)
    assert all("taken from the record" in text for text in texts)
    assert complaint(report, 100.0) == ""


def test_nothing_can_be_said_where_no_decision_reads_what_is_changed(log: Sequence[Stored]) -> None:
    report = whatif(log, {"swarm": {"owner_grace_ms": 1_000}})
    assert "no decision reads" in complaint(report, 100.0)
    assert "no decision reads" not in complaint(whatif(log, {"swarm": {"grace_ms": 1_000}}), 100.0)
