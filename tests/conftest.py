"""Fixtures that every test may use, and how hypothesis searches."""

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
