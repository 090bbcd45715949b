"""The table of aims that ``neuraxis bench`` ends with, its JSON, and its drawings."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from bench.harness import aims
from bench.harness import table as harness
from bench.harness.aims import AIMS, Aim, outcomes, table
from bench.harness.curves import CURVES, drawings
from bench.harness.report import encode
from deploy.cli.running.bench import BENCHES, BRIEF, IN_BRIEF, RECORDS, bench
from tests.each import each

ROWS = [
    {"case": "ours", "setting": "20/s, p50", "value": 30.0, "ratios": {"the peer, fast": 1.5}},
    {"case": "ours", "setting": "20/s, p99", "value": 90.0, "ratios": {}},
    {"case": "ours, elsewhere", "setting": "20/s, p50", "value": 5.0, "ratios": {}},
]


def aim(figure: str = "value", bound: float = 40, *, case: str = "ours", most: bool = True, **peers: str) -> Aim:
    return Aim("a figure", "some", {"case": case, "setting": "20/s, p50"}, figure, bound, "ms", most, peers)


def test_a_figure_within_its_bound_is_reached() -> None:
    (found,) = outcomes({"some": ROWS}, [aim()])
    assert (found.found, found.reached, found.reach, found.ratios) == (30, True, "at most 40", {"the peer, fast": 1.5})


def test_of_several_rows_the_worst_counts() -> None:
    most, least = outcomes({"some": ROWS}, [aim(case="ours*", bound=10), aim(case="ours*", bound=10, most=False)])
    assert (most.found, most.reached) == (30, False)
    assert (least.found, least.reached) == (5, False)


def test_an_aim_can_be_a_multiple_of_a_peers_figure() -> None:
    (found,) = outcomes({"some": ROWS}, [aim("ratio: the peer", 1, most=False)])
    assert (found.found, found.reached, found.reach) == (1.5, True, "at least 1")


def test_peers_in_the_same_row_are_told_as_multiples() -> None:
    row = {"case": "ours", "setting": "20/s, p50", "value": 2.0, "loop": 5.0, "gone": 0.0}
    (found,) = outcomes({"some": [row]}, [aim(loop="loop", unmeasured="gone")])
    assert found.ratios == {"loop": 2.5}


def test_an_aim_that_was_not_measured_is_neither_reached_nor_missed() -> None:
    found = outcomes({}, [aim()])
    assert (found[0].found, found[0].reached) == (None, None)
    assert table(found).splitlines()[1].split() == ["a", "figure", "at", "most", "40", "not", "run", "ms"]


@each("aim", AIMS, named=lambda aim: aim.what)
def test_every_aim_is_told_by_a_benchmark_that_there_is(aim: Aim) -> None:
    assert aim.bench in BENCHES


def test_what_runs_in_brief_is_what_tells_an_aim_or_a_curve() -> None:
    assert set(IN_BRIEF) == {*aims.BENCHES, *(curve.bench for curve in CURVES)}
    assert (BRIEF, RECORDS) == (harness.BRIEF, harness.RECORDS)


@each("curve", CURVES, named=lambda curve: curve.bench)
def test_a_curve_needs_several_sizes_and_is_drawn_the_same_each_time(curve: object) -> None:
    assert isinstance(curve, type(CURVES[0]))
    rows = [{curve.size: 10**n, curve.cost: 2.0 * n, **dict.fromkeys(curve.lines, "ours")} for n in (1, 2, 3)]
    assert drawings({curve.bench: rows[:1]}) == {}
    drawn = drawings({curve.bench: rows})
    assert drawn == drawings({curve.bench: rows})
    assert list(drawn) == [f"{curve.bench}.svg"]
    assert b"ours" in drawn[f"{curve.bench}.svg"]


def test_a_run_is_written_as_json_with_its_aims_and_all_rows() -> None:
    written = json.loads(encode({"some": ROWS}, outcomes({"some": ROWS}, [aim()])))
    assert written["benchmarks"] == {"some": ROWS}
    assert [(each["what"], each["found"], each["reached"]) for each in written["aims"]] == [("a figure", 30.0, True)]


def test_a_named_benchmark_ends_with_the_aims_that_it_tells_and_writes_them(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(harness.LONGEST, "0.02")  # which figures are told is seen, not how good they are
    file = tmp_path / "bench.json"
    assert bench.main(["router", "--json", str(file)], standalone_mode=False) is None
    said = capfd.readouterr().out
    assert "choosing a mode, p99" in said
    assert "fenced append" not in said
    written = json.loads(file.read_bytes())
    assert {row["case"] for row in written["benchmarks"]["router"]} > {"question", "megabyte"}
    assert [each["what"] for each in written["aims"]] == ["choosing a mode, p99"]


def test_a_folder_that_cannot_be_drawn_into_is_refused_before_anything_is_measured(tmp_path: Path) -> None:
    refused = CliRunner().invoke(bench, ["router", "--plot", str(tmp_path / "missing" / "plots")])
    assert refused.exit_code != 0
    assert "there is no folder" in str(refused.exception)
    assert "router" not in refused.output
