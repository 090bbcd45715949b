"""The budget of an exchange in docs/performance.md, counted on a running set."""

import re
from pathlib import Path

import pytest

from bench.system.path import EVERY, PATHS, measure
from bench.system.path_costs import UNITS, Cost, costs_of, flushes_in_a_row, together

PAGE = Path("docs/performance.md")
IN_A_ROW = "flushes in a row"
SLACK = 1.1
STALE = 1.5
TIMED = {"flushes", IN_A_ROW, "messages read"}
"""Units of which there are fewer on a busy machine, where more events share a flush: they have no least number."""


def budget(path: str) -> dict[str, float]:
    """Return what the page allows an exchange of a path, by unit."""
    column = list(PATHS).index(path)
    lines = re.findall(r"^\| ([a-z ]+) \| ([0-9.]+) \| ([0-9.]+) \|", PAGE.read_text(), re.MULTILINE)
    return {unit: float(numbers[column]) for unit, *numbers in lines}


@pytest.mark.parametrize("path", PATHS)
def test_an_exchange_costs_what_the_page_allows(path: str) -> None:
    measured = measure(path, exchanges=15, warm_up=8)
    counted = {unit: cost.count for unit, cost in measured.costs[EVERY].items()}
    counted[IN_A_ROW] = measured.flushes_in_a_row
    allowed = budget(path)
    assert allowed.keys() == (UNITS.keys() | {IN_A_ROW}) - {"appends"}
    over = {unit: (counted[unit], most) for unit, most in allowed.items() if counted[unit] > SLACK * most}
    stale = {
        unit: (counted[unit], most)
        for unit, most in allowed.items()
        if unit not in TIMED and STALE * counted[unit] < most
    }
    assert not over, f"{PAGE}: an exchange that is {path} costs more than its budget (counted, budget)"
    assert not stale, f"{PAGE}: lower the budget of an exchange that is {path} (counted, budget)"
    assert counted[IN_A_ROW] >= 2


def test_events_of_one_flush_are_one_flush_in_a_row() -> None:
    stored = [
        ("input", "", "forged_id.input.received", 1),
        ("reflex", "input", "forged_id.reflex.passed", 2),
        ("appraisal", "reflex", "forged_id.appraisal.completed", 2),  # decided ahead, stored together
        ("answer", "appraisal", "forged_id.response.emitted", 3),
        ("other", "input", "forged_id.swarm.noted", 4),
    ]
    assert flushes_in_a_row(stored) == 3


def test_a_time_is_that_of_all_parts_of_a_unit_for_each_count() -> None:
    records = {
        "counts": {"decisions": 4, "flushes": 2, "evolves": 0},
        "ns": {"deciding memory": 6_000, "deciding reflex": 2_000, "fold memory": 9_000},
        "waited_ns": [5_000, 7_000],
    }
    costs = costs_of(records, exchanges=2)
    assert costs == {"decisions": Cost(2.0, 2.0), "flushes": Cost(1.0, 6.0)}
    assert together([costs, {"decisions": Cost(6.0, 6.0), "allocations": Cost(10.0)}]) == {
        "decisions": Cost(8.0, 5.0),
        "flushes": Cost(1.0, 6.0),
        "allocations": Cost(10.0),
    }
