"""One running set for all end-to-end tests of a process; they only ever add exchanges of their own."""

from collections.abc import Iterator

import pytest

from tests.e2e.live import Live


@pytest.fixture(scope="session")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A set that runs; its commands need no ``--data``."""
    running = Live(tmp_path_factory.mktemp("live"))
    yield running
    running.stop()
