"""Effectors are found where they are, and the broker's users know which they are."""

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from actors.delegate import EFFECTOR as DELEGATE
from deploy.config.loading import all_sections, assignment_layer, resolve
from deploy.processes.broker import DECIDERS
from deploy.processes.broker import EFFECTORS as USER
from deploy.processes.broker.users import broker_users
from deploy.processes.effector_registry import EFFECTORS, InvalidEffector, load_effectors, needed_effectors
from tests.each import each


def test_the_effectors_are_found_by_name() -> None:
    assert list(EFFECTORS) == ["delegate", "llm", "webhook"]
    assert EFFECTORS["delegate"] is DELEGATE


def test_their_user_may_answer_for_each_of_them_and_the_deciders_for_none() -> None:
    users = {user.name: user for user in broker_users("NEURAXIS")}
    assert set(users[USER].owners) == set(EFFECTORS)
    assert not set(users[DECIDERS].owners) & set(EFFECTORS)


@each(
    ("assignments", "attached", "hosted"),
    [
        ((), False, ()),
        ((), True, ("delegate", "llm")),
        (("webhook.receivers.ops.style=slack",), False, ("webhook",)),
        (("webhook.receivers.ops.style=slack",), True, ("delegate", "llm", "webhook")),
    ],
)
def test_those_are_hosted_that_have_something_to_do(
    assignments: tuple[str, ...], attached: bool, hosted: tuple[str, ...]
) -> None:
    config = resolve(all_sections(), [assignment_layer(assignment) for assignment in assignments])
    assert needed_effectors(config, attached=attached) == hosted


@pytest.fixture
def some_actors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An importable package ``some_effectors`` to put packages into."""
    root = tmp_path / "some_effectors"
    root.mkdir()
    (root / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    yield root
    for name in [name for name in sys.modules if name.split(".")[0] == "some_effectors"]:
        del sys.modules[name]


def write_package(root: Path, name: str, source: str) -> None:
    (root / name).mkdir()
    (root / name / "__init__.py").write_text(source)


def test_packages_without_an_effector_are_passed_over(some_actors: Path) -> None:
    write_package(some_actors, "decider", "ACTOR = None\n")
    write_package(some_actors, "delegate", "from actors.delegate import EFFECTOR\n")
    assert load_effectors(import_module("some_effectors")) == {"delegate": DELEGATE}


@pytest.mark.parametrize("source", ["from actors.delegate import EFFECTOR\n", "EFFECTOR = 'webhook'\n"])
def test_an_export_that_is_no_effector_of_its_package_is_refused(some_actors: Path, source: str) -> None:
    write_package(some_actors, "webhook", source)
    with pytest.raises(InvalidEffector, match="make it an EffectorSpec named 'webhook'"):
        load_effectors(import_module("some_effectors"))
