"""Fixtures that every test may use, how hypothesis searches, and what keeps a run short."""

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.broker import Broker

# The same examples every time, so that a red run stays red; HYPOTHESIS_PROFILE=searching looks for new ones.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("searching", deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))

ALLOCATIONS = 100_000
"""Objects made, less those freed, between two searches for garbage cycles; Python's own 700 took a sixth of the time of
tests that only compute."""
gc.set_threshold(ALLOCATIONS, *gc.get_threshold()[1:])


def pytest_collection_finish() -> None:
    """Take what was collected out of every later search for garbage: it stays until the end."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def _compiled_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Where Python may not write bytecode beside the modules, keep it elsewhere: else each of the hundreds of
    processes that tests start compiles all of the project anew, a quarter of a second."""
    with pytest.MonkeyPatch.context() as patch:
        if os.environ.get("PYTHONDONTWRITEBYTECODE"):
            patch.delenv("PYTHONDONTWRITEBYTECODE")
            patch.setenv("PYTHONPYCACHEPREFIX", str(tmp_path_factory.mktemp("bytecode")))
        yield


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    """A fresh nats-server, running, that flushes every append; one for each test (it starts in some 20 ms)."""
    with Broker(tmp_path / "broker") as running:
        yield running


LONG = ("tests/simulation/test_worlds.py", "tests/faults/", "tests/test_contributing.py")
"""Where single tests take tens of seconds."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the longest tests first, so that no process is left alone with them at the end."""
    items.sort(key=lambda item: not item.nodeid.startswith(LONG))
