"""The registry finds the actors there are, and refuses those that contradict the catalogue."""

import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import actors
from actors import clock, responder
from actors.registry import ACTORS, InvalidActor, UnknownActor, actor_named, check_actor, load_actors
from schemas.event import Event
from schemas.vocabulary.clock import ClockConfigured, ClockFailed, ClockFired
from tests.each import each


def test_it_finds_the_actors_by_name():
    assert ACTORS["clock"] is clock.ACTOR
    assert ACTORS["responder"] is responder.ACTOR
    assert list(ACTORS) == sorted(ACTORS)


def test_the_runtime_is_not_an_actor():
    assert "runtime" not in ACTORS


def test_an_actor_is_found_by_its_name():
    assert actor_named("clock") is clock.ACTOR


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(UnknownActor, match=r"no actor 'respnder': did you mean 'responder'\?"):
        actor_named("respnder")


def test_a_name_like_no_other_is_answered_with_all():
    with pytest.raises(UnknownActor, match=r"there are .*clock.*responder"):
        actor_named("zzz")


class Unlisted(Event, frozen=True, kw_only=True, tag="forged_id.nowhere.listed"):
    """An event that the catalogue does not hold."""


class Impostor(ClockFired, frozen=True, kw_only=True, tag="forged_id.clock.fired"):
    """A second struct under a listed subject."""


@each(
    ("change", "complaint"),
    [
        ({"name": "responder"}, "calls its actor 'responder': name it 'clock'"),
        ({"consumes": (Unlisted,)}, "consumes Unlisted, which the catalogue does not list"),
        ({"consumes": (Impostor,)}, "consumes Impostor, which the catalogue does not list"),
        ({"consumes": clock.ACTOR.consumes * 2}, "consumes an event twice"),
        ({"consumes": (ClockFired,)}, "consumes its own events"),
    ],
)
def test_an_actor_that_contradicts_the_catalogue_is_refused(change: dict[str, Any], complaint: str):
    with pytest.raises(InvalidActor, match=complaint):
        check_actor("clock", replace(clock.ACTOR, **change))


def test_an_actor_whose_own_events_the_catalogue_lacks_is_refused():
    with pytest.raises(LookupError, match="the catalogue has no Configured of 'watch': add `own_entries`"):
        replace(clock.ACTOR, name="watch")


def test_an_actor_that_agrees_with_the_catalogue_is_returned_and_has_its_own_events_from_there():
    assert check_actor("clock", clock.ACTOR) is clock.ACTOR
    assert (clock.ACTOR.configured, clock.ACTOR.failed) == (ClockConfigured, ClockFailed)


@pytest.fixture
def bench_of_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An importable package ``some_actors`` to put packages into."""
    root = tmp_path / "some_actors"
    root.mkdir()
    (root / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    yield root
    for name in [name for name in sys.modules if name.split(".")[0] == "some_actors"]:
        del sys.modules[name]


def write_package(root: Path, name: str, source: str, *, decides: bool = True) -> None:
    (root / name).mkdir()
    (root / name / "__init__.py").write_text(source)
    if decides:
        (root / name / "decider.py").touch()


def test_packages_with_a_decider_are_loaded_and_others_passed_over(bench_of_packages: Path):
    write_package(bench_of_packages, "clock", "from actors.clock import ACTOR\n")
    write_package(bench_of_packages, "guards", "")
    write_package(bench_of_packages, "gateway", "raise AssertionError('an entry point is no actor')\n", decides=False)
    (bench_of_packages / "module.py").write_text("raise AssertionError('a module is no actor package')\n")
    assert load_actors(import_module("some_actors")) == {"clock": clock.ACTOR}


def test_an_actor_in_a_package_of_another_name_is_refused_at_load(bench_of_packages: Path):
    write_package(bench_of_packages, "metronome", "from actors.clock import ACTOR\n")
    with pytest.raises(InvalidActor, match="actors/metronome calls its actor 'clock'"):
        load_actors(import_module("some_actors"))


def test_every_package_that_exports_an_actor_is_found():
    exported = {
        found.name
        for found in pkgutil.iter_modules(actors.__path__)
        if found.ispkg and hasattr(import_module(f"actors.{found.name}"), "ACTOR")
    }
    assert exported == ACTORS.keys()


def test_the_actors_are_loaded_without_the_broker_and_without_what_writes_or_serves():
    """A replay of a file needs none of these; each costs every command that loads the actors a part of its start."""
    loaded = "import sys, actors.registry; print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", loaded], check=True, capture_output=True, text=True).stdout.split()
    assert not {"nats", "aiosqlite", "litestar", "httpx", "rich", "events.jetstream"}.intersection(modules)
