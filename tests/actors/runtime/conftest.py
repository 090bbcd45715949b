"""The vocabulary that tests of the runtime bring along."""

import pytest

from schemas.catalogue import CATALOGUE
from tests.actors.runtime.effectors.echo import ENTRIES


@pytest.fixture
def echo_vocabulary(monkeypatch: pytest.MonkeyPatch) -> None:
    """Enter the echo's events into the catalogue for the length of a test."""
    for entry in ENTRIES:
        monkeypatch.setitem(CATALOGUE, entry.topic, entry)
