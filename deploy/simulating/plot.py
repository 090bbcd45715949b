"""Drawing a report: mode shares, misroutes and weights over time. The same report gives the same bytes."""

from io import BytesIO
from typing import Any

from actors.monitor.settings import HEALTHY
from actors.router.settings import RouterSettings, effective_weights
from deploy.cli.rendering.layout.line_styles import MODE_COLOURS, line_style
from deploy.cli.rendering.sweeps import FORMS, require_matplotlib
from deploy.simulating.report import MODES, Report
from deploy.simulating.simulation import PROFILE

_SMOOTHED_DAYS = 3
"""How many days a point of a curve is the mean of."""


def plot_of(report: Report, form: str) -> bytes:
    """Return the report drawn; ``form`` is a suffix of ``FORMS``.

    Raises:
        PlotUnavailable: matplotlib is not installed.
    """
    require_matplotlib()
    import matplotlib
    from matplotlib.figure import Figure

    # With this salt, the ids in an SVG are always the same; without, they are random.
    with matplotlib.rc_context({"svg.hashsalt": "neuraxis", "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(figsize=(10, 9), layout="constrained")
        shares, misroutes, weights = figure.subplots(3, 1, sharex=True)
        _draw_shares(shares, report)
        _draw_misroutes(misroutes, report)
        _draw_weights(weights, report)
        weights.set_xlabel("day")
        for axes in (shares, misroutes, weights):
            if report.planted_on is not None:
                axes.axvline(report.planted_on, color="#d55e00", linewidth=0.8, linestyle=":", label="planted")
            axes.grid(alpha=0.25, linewidth=0.5)
            if axes.get_legend_handles_labels()[0]:  # there is none if no weight was changed
                axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
        figure.suptitle(f"{report.plant}: {report.meaning} (seed {report.seed})")
        drawn = BytesIO()
        figure.savefig(drawn, format=form.removeprefix("."), metadata=FORMS[form])
    return drawn.getvalue()


def _draw_shares(axes: Any, report: Report) -> None:
    days = [day.day for day in report.table]
    for index, mode in enumerate(MODES):
        values = [day.shares[mode] for day in report.table]
        axes.plot(days, values, color=MODE_COLOURS[mode], alpha=0.25, linewidth=0.7)
        axes.plot(
            days, smoothed(values), color=MODE_COLOURS[mode], label=mode, **line_style(index, len(MODES), marked=False)
        )
    healthy = HEALTHY["RESPOND"]
    axes.axhspan(
        healthy.low, healthy.high, color=MODE_COLOURS["RESPOND"], alpha=0.06, linewidth=0, label="RESPOND healthy"
    )
    axes.plot([], [], color="#777777", alpha=0.5, linewidth=0.7, label="a single day")
    axes.set_ylabel(f"share of decisions\n(mean of {_SMOOTHED_DAYS} days)")
    axes.set_ylim(0, 1)


def _draw_misroutes(axes: Any, report: Report) -> None:
    days = [day.day for day in report.table]
    lines = (
        ("misrouted", "#d55e00", [day.misrouted for day in report.table]),
        ("missed CLARIFY", MODE_COLOURS["CLARIFY"], [day.missed_clarify for day in report.table]),
        ("missed ACT", MODE_COLOURS["ACT"], [day.missed_act for day in report.table]),
        ("ambiguous", "#999999", [day.ambiguous for day in report.table]),
    )
    for index, (label, colour, values) in enumerate(lines):
        axes.plot(days, smoothed(values), color=colour, label=label, **line_style(index, len(lines), marked=False))
    axes.set_ylabel("share of decisions")
    axes.set_ylim(bottom=0)


def _draw_weights(axes: Any, report: Report) -> None:
    default = effective_weights(RouterSettings(profile=PROFILE))
    changed = sorted({name for day in report.table for name in day.weights})
    for index, name in enumerate(changed):
        values = [day.weights.get(name, default[name]) for day in report.table]
        axes.step(
            [day.day for day in report.table],
            values,
            where="mid",
            label=name,
            **line_style(index, len(changed), marked=False),
        )
    reverted = [
        (change.day, change.after)
        for change in report.changes
        if change.what.startswith("reverted") and change.after is not None
    ]
    if reverted:
        axes.plot(*zip(*reverted, strict=True), "x", color="#d55e00", markersize=5, zorder=4, label="reverted")
    axes.set_ylabel("weight in force")


def smoothed(values: list[float]) -> list[float]:
    """Return, for each day, the mean of its value and those of the days before it, ``_SMOOTHED_DAYS`` in all."""
    windows = (values[max(0, day - _SMOOTHED_DAYS + 1) : day + 1] for day in range(len(values)))
    return [sum(window) / len(window) for window in windows]
