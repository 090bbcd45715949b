"""The monitor's findings and the regulator's changes, as lines for people. Pure.

A pressure is a fault of an agent's routing beyond its threshold. In a cycle, the regulator looks at an agent's latest
decisions and changes one weight of the router at most, on trial; the offset is the sum of all changes of a weight.
"""

from collections.abc import Mapping

from rich.text import Text

from deploy.cli.rendering.layout.counted_nouns import counted
from deploy.cli.rendering.layout.printable import printable
from deploy.cli.rendering.why.lines import Lines, lines_on
from schemas.vocabulary.monitor import ModeInRange, ModeOutOfRange, ModeRedFlag, RateExceeded, RateRecovered
from schemas.vocabulary.regulator import (
    Adjusted,
    Confirmed,
    CycleCompleted,
    Held,
    Pressure,
    RegulatorScheduled,
    Reverted,
)

HELD: Mapping[Held, str] = {
    "no_weight": "no weight of the router answers it",
    "no_cue": "the inputs gave no occasion for it",
    "no_evidence": "nobody missed it",
    "within_chance": "so few decisions may show it by chance",
    "at_bound": "the weight is at its bound",
    "beyond_bounds": "somebody has set the weight beyond its bounds",
    "on_trial": "the weight's last change is not judged yet",
    "cooling": "the weight was changed too lately",
    "resting": "a series of changes of the weight has not helped lately",
    "too_small": "what is called for could not be told from chance",
    "day_spent": "the day's allowance of change is spent",
    "behind_a_worse_one": "a cycle makes one change",
}
"""Why a pressure changed nothing -> the reason in words."""


@lines_on.register
def _out_of_range(event: ModeOutOfRange) -> Lines:
    line = Text(f"{event.mode} {event.share:.1%} of the last {event.decisions}: ")
    is_inside = event.low <= event.share <= event.high
    line.append("still at the edge of its healthy range" if is_inside else f"{event.side} its healthy range", "yellow")
    return [line.append(f" of {event.low:.0%} to {event.high:.0%}")]


@lines_on.register
def _red_flag(event: ModeRedFlag) -> Lines:
    line = Text(f"{event.mode} {event.share:.1%} of the last {event.decisions}: ")
    return [line.append(f"{event.side} {event.limit:.0%}, a sign of {printable(event.sign)}", "bold red")]


@lines_on.register
def _in_range(event: ModeInRange) -> Lines:
    line = Text(f"{event.mode} {event.share:.1%} of the last {event.decisions}: ")
    return [line.append(f"in its healthy range of {event.low:.0%} to {event.high:.0%}", "green")]


@lines_on.register
def _exceeded(event: RateExceeded) -> Lines:
    line = Text(f"{event.rate} {event.value:g} over the last {event.decisions}: ")
    return [line.append(f"{event.side} {event.threshold:g}", "yellow")]


@lines_on.register
def _recovered(event: RateRecovered) -> Lines:
    line = Text(f"{event.rate} {event.value:g} over the last {event.decisions}: ")
    return [line.append(f"back on the right side of {event.threshold:g}", "green")]


@lines_on.register
def _scheduled(event: RegulatorScheduled) -> Lines:
    applied = ", ".join(f"{printable(name)} {offset:+g}" for name, offset in event.offsets.items())
    head = Text(f"the next cycle in {_duration(event.wake_after_ms)}")
    return [head, *([Text(f"applied so far: {applied}", "dim")] if applied else [])]


@lines_on.register
def _completed(event: CycleCompleted) -> Lines:
    head = Text(f"{event.outcome.replace('_', ' ')}, after {counted(event.decisions, 'decision')}")
    after = event.wake_after_ms
    head.append(f"; the next cycle in {_duration(after)}" if after else "; no next cycle until a decision is made")
    return [head, *(Text(pressure_line(pressure), "dim") for pressure in event.pressures)]


def _duration(ms: int) -> str:
    return f"{ms / 3_600_000:g} h" if ms >= 3_600_000 else f"{ms / 1_000:g} s"


def pressure_line(pressure: Pressure) -> str:
    """Return a pressure as a line."""
    change = f"{'raise' if pressure.sign > 0 else 'lower'} {pressure.parameter}" if pressure.parameter else "no weight"
    line = f"{pressure.name} {pressure.value:g}, threshold {pressure.threshold:g}, severity {pressure.severity:g}"
    held = f", not now: {HELD[pressure.held]}" if pressure.held else ""
    return printable(f"{line}: {change}{held}")


@lines_on.register
def _adjusted(event: Adjusted) -> Lines:
    clipped = "" if event.delta == event.requested else f" (of {event.requested:+g} asked for)"
    line = Text(f"{printable(event.parameter)} {event.before:g} → {event.after:g}", "bold")
    line.append(f", {event.delta:+g}{clipped}, {event.offset:+g} in all", "not bold")
    if event.fading:
        return [line, Text(f"a step back: {event.pressure} has not called for it lately", "dim")]
    step = "" if event.step == 1 else f", step {event.step} of a series"
    return [line, Text(f"because of {event.pressure}, whose metric is {event.metric_before:g}{step}", "dim")]


@lines_on.register
def _reverted(event: Reverted) -> Lines:
    line = Text(f"{printable(event.parameter)} {event.before:g} → {event.after:g}", "bold yellow")
    line.append(f": {event.verdict.replace('_', ' ')}", "not bold")
    after = "not measured" if event.metric_after is None else f"{event.metric_after:g}"
    left = f"; {counted(event.steps_left, 'step')} of the series to follow" if event.steps_left else ""
    return [line, Text(f"{event.pressure}: {event.metric_before:g} before, {after} after{left}", "dim")]


@lines_on.register
def _confirmed(event: Confirmed) -> Lines:
    line = Text(f"{printable(event.parameter)} {event.delta:+g} stays", "green").append(f", {event.offset:+g} in all")
    return [line, Text(f"{event.pressure}: {event.metric_before:g} before, {event.metric_after:g} after", "dim")]
