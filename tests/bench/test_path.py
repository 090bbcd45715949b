"""The time line of ``neuraxis bench path``."""

import subprocess
import sys

from bench.system.path import Step, steps_of
from tests.e2e.live import environment

MS = 1_000_000


def test_a_step_is_the_median_of_what_at_least_half_of_the_exchanges_have() -> None:
    sent = [(0, 9 * MS), (100 * MS, 109 * MS), (200 * MS, 209 * MS)]
    marks = [
        (1 * MS, "sent", "input.received"),
        (2 * MS, "delivered to deciders", "input.received"),
        (3 * MS, "sent", "input.received"),  # sent again: the first counts
        (103 * MS, "sent", "input.received"),
        (104 * MS, "decided", "reflex.blocked"),  # one of three
        (202 * MS, "sent", "input.received"),
        (208 * MS, "delivered to deciders", "input.received"),
    ]
    assert steps_of(sent, marks) == [
        Step("input.received", "sent", 2.0),
        Step("input.received", "delivered to deciders", 5.0),
    ]


def test_every_function_that_is_measured_is_still_there() -> None:
    code = "from bench.system.path_probe import install; install()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment(), check=False)
    assert (done.returncode, done.stderr) == (0, "")
