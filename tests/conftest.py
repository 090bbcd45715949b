"""Fixtures that every test may use."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker import Broker


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    """A fresh nats-server, running, that flushes every append; one for each test (it starts in some 20 ms)."""
    folder = tmp_path / "broker"
    folder.mkdir()
    with Broker(folder) as running:
        yield running
