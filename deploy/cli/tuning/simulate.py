"""``neuraxis simulate``."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from deploy.cli.command_types import command
from deploy.cli.named_files import write_file
from deploy.cli.options import examples, json_option
from deploy.cli.outcomes import WrongUse
from deploy.cli.output import emit, print_json
from deploy.cli.rendering.layout.counted_nouns import counted
from deploy.cli.rendering.layout.terminal import console, progress
from deploy.cli.replaying.plot_option import check_plot, plot_option

if TYPE_CHECKING:
    from deploy.simulating.report import Report

_PLANTS = ("none", "misrouting", "over-questioning", "under-acknowledging", "bad-adjustment")
"""The names of the faults that can be planted."""

_MAX_DAYS = 3650
_MIN_WIDE_COLUMNS = 120
"""Width of a terminal, in columns, from which the table of days has a column for each mode."""

_MAX_SEED = 2**63 - 1
_MAX_EXCHANGES = 1_000_000
"""The most exchanges in a whole simulation; these take some ten minutes."""


class DayShown(msgspec.Struct, frozen=True, kw_only=True):
    """A day of the table: shares in percent of its decisions.

    ``ambiguous``: the scores of two modes were too close. ``misrouted``: people's reactions showed a wrong mode.
    ``unhealthy`` names the modes whose share is out of range, and ``weights`` those that the regulator has changed.
    """

    day: int
    decisions: int
    RESPOND: int
    CLARIFY: int
    ACT: int
    ACKNOWLEDGE: int
    IGNORE: int
    ambiguous: int
    misrouted: int
    unhealthy: str
    weights: str


class ChangeShown(msgspec.Struct, frozen=True, kw_only=True):
    """A change of a weight, or the confirmation of one; ``value`` and ``metric`` are written before → after.

    ``pressure`` names the fault of the routing that led to it, which ``metric`` measures.
    """

    day: float
    what: str
    weight: str
    value: str
    pressure: str
    metric: str


@command(
    epilog=examples(
        "neuraxis simulate --plant misrouting",
        "neuraxis simulate --plant bad-adjustment --days 20 --seed 3",
        "neuraxis simulate --plant over-questioning --gone-on 35",
        "neuraxis simulate --plant misrouting --plot routing.svg",
        "neuraxis simulate --json | jq .digest",
    )
)
@click.option("--days", type=click.IntRange(1, _MAX_DAYS), default=60, show_default=True, help="Days to simulate.")
@click.option(
    "--seed",
    type=click.IntRange(0, _MAX_SEED),
    default=1,
    show_default=True,
    help="Seed of the random numbers: what people say follows from it.",
)
@click.option(
    "--exchanges-per-day", type=click.IntRange(1, 10_000), default=120, show_default=True, help="About how many."
)
@click.option(
    "--plant",
    type=click.Choice(_PLANTS),
    default="none",
    show_default=True,
    help="The fault to plant, for the regulator to find and correct.",
)
@click.option(
    "--gone-on",
    type=click.IntRange(1, _MAX_DAYS),
    metavar="DAY",
    help="Set the planted weights right again on that day: what was corrected must fade.",
)
@click.option(
    "--every", type=click.IntRange(1, _MAX_DAYS), default=1, show_default=True, help="Show every so many days."
)
@plot_option("it")
@json_option
def simulate(
    days: int,
    seed: int,
    exchanges_per_day: int,
    plant: str,
    gone_on: int | None,
    every: int,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Simulate weeks of an agent's conversations in seconds, and show how its routing is corrected.

    The deciders are the real ones, in virtual time, without a broker; the people are made up. The same seed gives the
    same bytes: events, states, report and drawing.
    """
    from deploy.simulating.report import report_of
    from deploy.simulating.simulation import simulate_days

    _check_length(days, exchanges_per_day, plant, gone_on)
    if as_json and every != 1:
        raise WrongUse("--every thins out the table, and --json gives every day: leave one of them out")
    if plot is not None:
        check_plot(plot)
    with progress("simulating", days) as advance:
        simulation = simulate_days(
            days=days,
            seed=seed,
            exchanges_per_day=exchanges_per_day,
            plant=plant,
            gone_on=gone_on,
            progress=advance,
        )
    report = report_of(simulation)
    if plot is not None:
        _draw(plot, report)
    if as_json:
        print_json(report)
        return
    _print_report(report, every)


def _check_length(days: int, exchanges_per_day: int, plant: str, gone_on: int | None) -> None:
    """Refuse a simulation that would take too long, or end before the planted fault comes or goes."""
    from deploy.simulating.planted_faults import PLANTS

    exchanges = days * exchanges_per_day
    if exchanges > _MAX_EXCHANGES:
        raise WrongUse(
            f"{counted(days, 'day')} of {exchanges_per_day:,} exchanges come to {exchanges:,}, and a simulation may "
            f"have {_MAX_EXCHANGES:,} at most: give fewer --days or --exchanges-per-day"
        )
    planted_on = PLANTS[plant].planted_on
    if planted_on is not None and days <= planted_on:
        raise WrongUse(
            f"--plant {plant} goes wrong on day {planted_on}, counted from 0, and {days} days end before it: "
            f"give --days {planted_on + 1} or more"
        )
    if gone_on is None:
        return
    if not PLANTS[plant].weights:
        settable = ", ".join(name for name, each in PLANTS.items() if each.weights)
        raise WrongUse(f"--plant {plant} sets no weights that could be set right on a day: --gone-on is for {settable}")
    if planted_on is not None and not planted_on < gone_on < days:
        raise WrongUse(
            f"--gone-on {gone_on} must lie after day {planted_on}, on which --plant {plant} goes wrong, and before "
            f"the end of {days} days"
        )


def _draw(plot: Path, report: "Report") -> None:
    from deploy.simulating.plot import plot_of

    write_file(plot, plot_of(report, plot.suffix.lower()))


def _print_report(report: "Report", every: int) -> None:
    click.echo(f"{report.plant}: {report.meaning}")
    if report.planted_on is not None:
        gone = "" if report.gone_on is None else f", set right on day {report.gone_on}"
        click.echo(f"planted on day {report.planted_on}{gone}")
    click.echo()
    is_wide = console().width >= _MIN_WIDE_COLUMNS
    emit(_day_rows(report, every) if is_wide else map(_narrow_row, _day_rows(report, every)), as_json=False)
    click.echo()
    emit(_change_rows(report), as_json=False)
    click.echo()
    summary = f"{counted(report.days, 'day')}, {counted(report.events, 'event')}"
    click.echo(f"{summary}, digest {report.digest[:16]}, seed {report.seed}")


def _narrow_row(day: DayShown) -> dict[str, object]:
    """Return a day for a terminal that has no room for a column for each mode."""
    shares = ((mode, getattr(day, mode)) for mode in ("RESPOND", "CLARIFY", "ACT", "ACKNOWLEDGE", "IGNORE"))
    listed = ", ".join(f"{mode} {share}" for mode, share in shares if share)
    kept = {name: getattr(day, name) for name in ("day", "decisions", "ambiguous", "misrouted")}
    return {**kept, "percent": listed, "unhealthy": day.unhealthy, "weights": day.weights}


def _day_rows(report: "Report", every: int) -> Iterator[DayShown]:
    for day in report.table[::every]:
        percent = {mode: round(share * 100) for mode, share in day.shares.items()}
        yield DayShown(
            day=day.day,
            decisions=day.decisions,
            **percent,
            ambiguous=round(day.ambiguous * 100),
            misrouted=round(day.misrouted * 100),
            unhealthy=" ".join(day.unhealthy),
            weights=" ".join(f"{name}={value:g}" for name, value in day.weights.items()),
        )


def _change_rows(report: "Report") -> Iterator[ChangeShown]:
    for change in report.changes:
        has_values = change.before is not None and change.after is not None
        after = "" if change.metric_after is None else f" → {change.metric_after:g}"
        yield ChangeShown(
            day=change.day,
            what=f"{change.what} (planted)" if change.planted else change.what,
            weight=change.parameter,
            value=f"{change.before:g} → {change.after:g}" if has_values else "stays",
            pressure=change.pressure,
            metric=f"{change.metric_before:g}{after}",
        )
