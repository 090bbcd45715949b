"""Simulated lives: a planted misrouting is corrected within bounds, a bad adjustment undone, and byte equals byte."""

import json
import re
from functools import cache
from itertools import pairwise
from pathlib import Path
from statistics import mean
from xml.etree import ElementTree

import click
import msgspec
import pytest
from click.testing import CliRunner, Result

from actors.monitor.settings import MonitorSettings
from actors.router.settings import RouterSettings, effective_weights
from deploy.cli import main
from deploy.cli.rendering import sweeps
from deploy.cli.tuning.simulate import simulate
from deploy.simulating.planted_faults import PLANTS
from deploy.simulating.plot import plot_of
from deploy.simulating.report import Day, Report, report_of
from deploy.simulating.simulated_people import WORDS, Population, session_of
from deploy.simulating.simulation import DAY_NS, DECIDERS, PROFILE, START_NS, Simulation, simulate_days
from schemas.vocabulary.monitor import ModeInRange, ModeRedFlag
from schemas.vocabulary.regulator import BOUNDS, Adjusted, Confirmed, PressureName, Reverted
from schemas.vocabulary.router import Mode, ModeSelected
from tests.each import each

DAYS = 60
DEFAULTS = effective_weights(RouterSettings(profile=PROFILE))
PLANTED = PLANTS["misrouting"].day


SHORT, GONE_ON = 40, 22
"""Days of a life whose planted weights are set right again, and on which day; the long form has 60, and 32."""


@cache
def _life(plant: str, days: int, seed: int, gone_on: int | None) -> Simulation:
    return simulate_days(days=days, seed=seed, exchanges_per_day=120, plant=plant, gone_on=gone_on)


def life(plant: str, days: int = DAYS, seed: int = 1, gone_on: int | None = None) -> Simulation:
    """Return a life, lived once however it is asked for: a cache tells ``f(1)`` and ``f(seed=1)`` apart."""
    return _life(plant, days, seed, gone_on)


def lived(plant: str) -> Simulation:
    """Return a life with something wrong, as short as tells it."""
    return life(plant, days=SHORT, gone_on=GONE_ON) if plant in SET_RIGHT else life(plant)


def share(days: list[Day]) -> float:
    return mean(day.shares["RESPOND"] for day in days)


def test_without_a_plant_modes_stay_healthy_and_weights_near_where_they_were():
    table = list(report_of(life("none")).table)
    assert 0.55 < share(table) < 0.70
    assert 0.08 < mean(day.shares["CLARIFY"] for day in table) < 0.20
    assert 0.05 < mean(day.shares["ACT"] for day in table) < 0.15
    assert all(abs(value - 0.2) < 0.03 for day in table for name, value in day.weights.items() if name == "ACT.base")
    assert len([event for event in life("none").messages if isinstance(event.event, Adjusted)]) < 15


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.faults) for seed in (2, 3))])
def test_a_planted_misrouting_is_corrected(seed: int):
    table = list(report_of(life("misrouting", seed=seed)).table)
    drifted, recovered = table[PLANTED : PLANTED + 4], table[-10:]
    assert share(table[:PLANTED]) < 0.70
    assert share(drifted) > 0.85
    assert share(recovered) < 0.78
    assert mean(day.missed_clarify for day in recovered) < mean(day.missed_clarify for day in drifted) / 2
    assert mean(day.misrouted for day in recovered) < mean(day.misrouted for day in drifted) * 0.75
    assert all(day.shares["ACT"] == 0 for day in drifted[1:3])
    assert mean(day.shares["ACT"] for day in recovered) > 0.02


SET_RIGHT: dict[str, tuple[Mode, PressureName, float]] = {
    "over-questioning": ("CLARIFY", "clarify_over_use", 0.25),
    "under-acknowledging": ("ACKNOWLEDGE", "acknowledge_under_use", 0.25),
}
"""Plant -> the mode that it makes too frequent or too rare, what finds it, and what share of the way back it comes."""


def assert_found_corrected_and_faded(plant: str, seed: int, days: int, gone_on: int) -> None:
    """Check that a planted wrong is found, that its mode comes back, and that the correction fades once it is gone."""
    mode, pressure, back = SET_RIGHT[plant]
    one = life(plant, days=days, seed=seed, gone_on=gone_on)
    table = list(report_of(one).table)

    def of(some: list[Day]) -> float:
        return mean(day.shares[mode] for day in some)

    healthy, planted, corrected, gone = (
        table[:PLANTED],
        table[PLANTED : PLANTED + 3],
        table[gone_on - 8 : gone_on],
        table[-5:],
    )
    found = [
        message.event
        for message in one.messages
        if isinstance(message.event, Adjusted) and not message.event.fading and message.event.pressure == pressure
    ]
    assert found, f"{pressure} moved no weight"
    assert (of(corrected) - of(planted)) / (of(healthy) - of(planted)) > back, "the mode is on its way back"
    red = MonitorSettings().ranges[mode]
    assert red.red_below < of(corrected) < red.red_above, "out of what calls for it at once"
    assert abs(of(gone) - of(healthy)) < 0.06
    assert any(isinstance(message.event, Adjusted) and message.event.fading for message in one.messages)
    # From the day on which the settings are right again, what is not the default is the correction.
    left = sum(abs(weight - DEFAULTS[name]) for name, weight in table[-1].weights.items())
    most = max(sum(abs(w - DEFAULTS[name]) for name, w in day.weights.items()) for day in table[gone_on + 1 :])
    assert left <= max(most / 2, 0.025), "what was corrected fades"


@pytest.mark.parametrize("plant", sorted(SET_RIGHT))
def test_what_is_planted_is_found_and_corrected_and_the_correction_fades_once_it_is_gone(plant: str):
    assert_found_corrected_and_faded(plant, 1, SHORT, GONE_ON)


@pytest.mark.faults
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("plant", sorted(SET_RIGHT))
def test_over_sixty_days_each_plant_is_corrected_within_bounds_and_fades(plant: str, seed: int):
    assert_found_corrected_and_faded(plant, seed, DAYS, 32)


@pytest.mark.faults
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_over_sixty_days_a_corrected_misrouting_fades_once_it_is_gone(seed: int):
    gone = report_of(life("misrouting", seed=seed, gone_on=34))
    before, after = gone.table[33].weights, gone.table[-1].weights
    assert before["RESPOND.base"] < 0.62
    assert after.get("RESPOND.base", 0.4) > 0.36
    assert 0.55 < mean(day.shares["RESPOND"] for day in gone.table[-5:]) < 0.72


def test_the_monitor_raises_the_red_flag_and_takes_it_back():
    about = [message for message in life("misrouting").messages if getattr(message.event, "mode", None) == "RESPOND"]
    flags = [message for message in about if isinstance(message.event, ModeRedFlag)]
    ends = [message for message in about if isinstance(message.event, ModeInRange)]
    assert START_NS + PLANTED * DAY_NS < flags[0].time_ns < START_NS + (PLANTED + 1) * DAY_NS
    assert ends[-1].time_ns > flags[-1].time_ns


@each("plant", sorted(PLANTS))
def test_every_correction_keeps_to_its_limits(plant: str):
    changes = [
        (message.time_ns, message.event)
        for message in lived(plant).messages
        if isinstance(message.event, Adjusted | Reverted)
    ]
    for at_ns, _ in changes:
        assert sum(abs(event.delta) for other_ns, event in changes if 0 <= other_ns - at_ns < DAY_NS) <= 0.02 + 1e-9
    own = [(at_ns, event) for at_ns, event in changes if (at_ns - START_NS) % DAY_NS]
    for name, (least, most) in BOUNDS.items():
        times = [at_ns for at_ns, event in own if event.parameter == name]
        assert all(later - earlier >= 2 * DAY_NS for earlier, later in pairwise(times))
        assert all(least <= event.after <= most for _, event in own if event.parameter == name)


@each("seed", [1, 2, 3])
def test_a_planted_bad_adjustment_is_undone_and_the_next_one_halved(seed: int):
    bad = life("bad-adjustment", days=14, seed=seed)
    wrong = PLANTS["bad-adjustment"].wrong
    assert wrong is not None
    planted_ns = START_NS + wrong.day * DAY_NS
    later = [message for message in bad.messages if message.time_ns >= planted_ns]
    planted, *others = [
        message.event
        for message in later
        if isinstance(message.event, Adjusted | Reverted | Confirmed) and message.event.parameter == wrong.parameter
    ]
    assert isinstance(planted, Adjusted)
    undone = others[0]
    assert isinstance(undone, Reverted)
    assert (undone.verdict, undone.delta, undone.after) == ("worse", 0.02, planted.before)
    again = [event for event in others[1:] if isinstance(event, Adjusted)]
    severities = [p.severity for m in later for p in getattr(m.event, "pressures", ()) if p.name == "missed_act"]
    assert all(event.requested <= max(severities) * 0.05 / 2 + 1e-6 for event in again)


def test_a_router_decides_with_each_correction_from_its_next_decision_on():
    in_force: dict[str, float] = {}
    corrections = 0
    for message in life("misrouting").messages:
        match message.event:
            case Adjusted(parameter=parameter, after=after) | Reverted(parameter=parameter, after=after):
                in_force[parameter] = after
                corrections += 1
            case ModeSelected(weights=weights) if message.time_ns > START_NS + (PLANTED + 1) * DAY_NS:
                assert {name: weights[name] for name in in_force} == in_force
    assert corrections > 20


def test_the_same_seed_gives_the_same_bytes_and_another_one_others():
    first, second = (simulate_days(days=4, seed=7, exchanges_per_day=60, plant="none") for _ in range(2))
    assert (first.digest, first.states) == (second.digest, second.states)
    assert msgspec.json.encode(report_of(first)) == msgspec.json.encode(report_of(second))
    assert simulate_days(days=4, seed=8, exchanges_per_day=60, plant="none").digest != first.digest
    assert {*first.states} == {*DECIDERS}


def test_a_session_is_of_the_needs_that_its_people_have():
    from random import Random

    population = Population()
    needs = [need for seed in range(200) for need in session_of(population, Random(seed))]
    assert {*needs} <= {*WORDS.needs}
    assert 0.4 < needs.count("report") / len(needs) < 0.6


def test_a_drawing_as_svg_names_the_shares_and_the_weights():
    pytest.importorskip("matplotlib")
    drawn = plot_of(report_of(life("bad-adjustment", days=14)), ".svg")
    assert ElementTree.fromstring(drawn).tag == "{http://www.w3.org/2000/svg}svg"
    for label in (b"RESPOND", b"missed ACT", b"act.question_moderate_context"):
        assert label in drawn


@pytest.mark.parametrize(("name", "begins"), [("routing.svg", b"<?xml"), ("routing.PNG", b"\x89PNG")])
def test_a_plot_is_drawn_as_its_name_ends_and_the_same_each_time(tmp_path: Path, name: str, begins: bytes):
    pytest.importorskip("matplotlib")
    drawn = []
    for _ in range(2):  # of a day on which no weight moves: there is nothing to name, and nothing is said of that
        done = refused_or_done("--days", "1", "--plot", str(tmp_path / name))
        assert (done.exit_code, done.stderr) == (0, "")
        drawn.append((tmp_path / name).read_bytes())
    assert drawn[0] == drawn[1]
    assert drawn[0].startswith(begins)


def test_without_matplotlib_a_plot_is_refused_before_anything_is_lived(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sweeps, "find_spec", lambda name: None)
    done = refused_or_done("--plot", "routing.svg")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "pip install 'neuraxis[plot]'" in done.stderr


def refused_or_done(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["simulate", *arguments])


@each(
    ("arguments", "told"),
    [
        (["--plot", "nowhere/routing.svg"], "there is no folder nowhere"),
        (["--plot", "routing.jpeg"], "ends in .svg or .png"),
        (["--plot", "routing"], "ends in .svg or .png"),
        (["--plant", "misrouting", "--days", "8"], "goes wrong on day 8, counted from 0, and 8 days end before it"),
        (["--plant", "bad-adjustment", "--days", "3"], "give --days 9 or more"),
        (["--days", "3650", "--exchanges-per-day", "10000"], "36,500,000, and a simulation may have 1,000,000 at most"),
        (["--days", "0"], "0 is not in the range 1<=x<=3650"),
        (["--days", "9" * 400], "is not in the range 1<=x<=3650"),
        (["--exchanges-per-day", "10001"], "is not in the range 1<=x<=10000"),
        (["--seed", "-1"], "is not in the range 0<=x<="),
        (["--plant", "bad-adjustment", "--gone-on", "20"], "sets no weights that could be set right on a day"),
        (["--plant", "misrouting", "--gone-on", "8"], "must lie after day 8, on which --plant misrouting goes wrong"),
        (["--plant", "misrouting", "--gone-on", "60"], "before the end of 60 days"),
        (["--seed", str(2**63)], "is not in the range 0<=x<="),
        (["--every", "0"], "is not in the range 1<=x<=3650"),
        (["--every", "2", "--json"], "leave one of them out"),
    ],
)
def test_what_cannot_be_lived_or_drawn_is_refused_at_once_with_what_to_do(arguments: list[str], told: str):
    done = refused_or_done(*arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert told in done.stderr


def test_a_report_says_planted_only_of_what_happened():
    planted_on = PLANTS["misrouting"].planted_on
    assert planted_on == PLANTED
    short = simulate_days(days=PLANTED, seed=1, exchanges_per_day=1, plant="misrouting")
    assert report_of(short).planted_on is None
    assert report_of(life("misrouting")).planted_on == PLANTED
    assert report_of(life("none")).planted_on is None


def test_the_command_prints_a_table_by_day_and_every_change():
    done = CliRunner().invoke(
        main, ["simulate", "--days", "12", "--plant", "bad-adjustment", "--seed", "2"], standalone_mode=False
    )
    assert done.exception is None
    assert "planted on day 8" in done.output
    assert re.search(r"8\.0\s+adjusted \(planted\)\s+act.question_moderate_context\s+0.2 → 0.18", done.output)
    assert re.search(r"10.\d+\s+reverted: worse\s+act.question_moderate_context\s+0.18 → 0.2", done.output)
    assert len(re.findall(r"^\d+ +1\d\d ", done.output, re.MULTILINE)) == 12


def test_the_command_prints_the_report_as_json():
    done = CliRunner().invoke(main, ["simulate", "--days", "2", "--json"], standalone_mode=False)
    report = msgspec.convert(json.loads(done.output), Report)
    assert (report.days, report.plant, len(report.table)) == (2, "none", 2)


def test_the_command_offers_every_plant():
    [option] = [each for each in simulate.params if each.name == "plant"]
    assert isinstance(option.type, click.Choice)
    assert [*option.type.choices] == [*PLANTS]
