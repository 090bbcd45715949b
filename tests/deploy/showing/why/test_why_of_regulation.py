"""What ``why`` and ``feed`` say of the monitor's and the regulator's events: every number, and no control codes."""

import msgspec

from deploy.cli.rendering.why.details import LineContext, details
from schemas.catalogue import entry_of
from schemas.event import Event
from schemas.vocabulary.monitor import ModeRedFlag, RateExceeded
from schemas.vocabulary.regulator import Adjusted, Confirmed, CycleCompleted, Reverted


def told(event: Event) -> str:
    from rich.console import Console

    console = Console(width=200, no_color=True)
    with console.capture() as captured:
        for line in details(event, LineContext()):
            console.print(line)
    return captured.get()


def test_a_red_flag_says_of_what_it_is_a_sign():
    assert "RESPOND 90.0% of the last 200: above 85%, a sign of overconfident" in told(entry_of(ModeRedFlag).sample)


def test_a_rate_names_its_threshold():
    assert "misroute 0.15 over the last 200: above 0.1" in told(entry_of(RateExceeded).sample)


def test_a_cycle_names_its_pressures_and_what_answers_them():
    lines = told(entry_of(CycleCompleted).sample)
    assert "adjusted, after 60 decisions; the next cycle in 24 h" in lines
    assert "respond_over_use 0.85, threshold 0.75, severity 0.4: lower RESPOND.base" in lines


def test_an_adjustment_that_was_clipped_says_so():
    sample = entry_of(Adjusted).sample
    assert "of -0.02 asked for" not in told(sample)
    assert "-0.005 (of -0.02 asked for)" in told(msgspec.structs.replace(sample, delta=-0.005))


def test_a_revert_and_a_confirmation_tell_the_metric_before_and_after():
    reverted = entry_of(Reverted).sample
    assert "respond_over_use: 0.85 before, 0.86 after" in told(reverted)
    assert "not measured after" in told(msgspec.structs.replace(reverted, metric_after=None))
    assert "respond_over_use: 0.85 before, 0.7 after" in told(entry_of(Confirmed).sample)


def test_names_from_outside_cannot_command_the_terminal():
    assert "\x1b" not in told(msgspec.structs.replace(entry_of(Adjusted).sample, parameter="\x1b[2J"))
