"""The two adapters that a test of the log runs on."""

from functools import partial

import pytest

from tests.events.setting import RunOnLog, run_on_jetstream, run_simulated


@pytest.fixture(params=["simulated", "jetstream"])
def run_on_log(request: pytest.FixtureRequest) -> RunOnLog:
    """Run a test's body on a log of each adapter: in virtual time, and on a broker of its own."""
    if request.param == "simulated":
        return run_simulated
    return partial(run_on_jetstream, request.getfixturevalue("broker"))
