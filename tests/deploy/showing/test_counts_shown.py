"""Tables of counts in a terminal: no number is cut, however many there are."""

from rich.console import Console

from deploy.cli.rendering.layout.counted_nouns import duration_text
from deploy.cli.rendering.layout.counts_table import CountsTable
from deploy.cli.rendering.replay import render_coverage
from events.replay.verifying.verification import Coverage
from tests.each import each


def _printed(shown: object, width: int) -> str:
    console = Console(width=width, force_terminal=False)
    with console.capture() as captured:
        console.print(shown)
    return captured.get()


@each("width", [40, 60, 80, 120])
def test_counts_of_a_log_of_millions_are_whole_at_any_width(width: int) -> None:
    (table, *_) = render_coverage({"self_review": Coverage(identical=112_345_678, silent=12_345_679, facts=9_876_543)})

    told = _printed(table, width)

    assert all(len(line.rstrip()) <= width for line in told.splitlines())
    assert "…" not in told
    assert {"112,345,678", "12,345,679", "9,876,543"} <= set(told.replace("\u00a0", " ").split())


def test_few_counts_stand_in_columns() -> None:
    counts = CountsTable("actor", ("kept", "lost"))
    counts.add("reflex", (12, 3_000))

    assert [line.rstrip() for line in _printed(counts, 80).splitlines()] == [
        "actor   kept   lost",
        "reflex    12  3,000",
    ]


def test_a_duration_is_told_by_its_largest_unit_and_the_one_below() -> None:
    told = {1: "1 second", 634: "10 minutes 34 seconds", 7_200: "2 hours", 7_201: "2 hours", 90_000: "1 day 1 hour"}
    assert {seconds: duration_text(seconds) for seconds in told} == told
