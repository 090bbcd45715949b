"""Quiet logs: an edge in bad weather says so often."""

from typing import Any

import pytest
import structlog


@pytest.fixture(autouse=True)
def _quiet_logs() -> Any:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    yield
    structlog.reset_defaults()
