"""Commands that tests run in their own process set up its logs; the next test must not find them so."""

import logging
from collections.abc import Iterator
from typing import Any

import pytest
import structlog


@pytest.fixture(autouse=True)
def _logs_as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    configure = structlog.configure

    def keeping_no_logger(**kept: Any) -> None:
        """Have no logger keep what was set up, or a later test could not capture what it says."""
        configure(**(kept | {"cache_logger_on_first_use": False}))

    monkeypatch.setattr(structlog, "configure", keeping_no_logger)
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers = handlers
    root.setLevel(level)
    structlog.reset_defaults()
