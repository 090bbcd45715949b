"""A sweep (a what-if run at each of several values of a setting) as a drawing; equal sweeps give equal bytes.

It is drawn by matplotlib, which is an optional extra; nothing else needs it.
"""

from collections.abc import Sequence
from importlib.util import find_spec
from io import BytesIO
from typing import Any

from deploy.cli.rendering.layout.line_styles import MODE_COLOURS, line_style
from deploy.cli.rendering.layout.printable import printable
from deploy.cli.rendering.what_if import mode_shares
from events.replay.whatif import Report

FORMS = {".svg": {"Date": None, "Creator": "neuraxis"}, ".png": {"Software": None}}
"""File suffix -> metadata without the time of drawing and the library's version."""

_MAX_KEY_CHARACTERS = 120


class PlotUnavailable(RuntimeError):
    """The drawing library is not installed; the message says how to install it."""

    code = "plot_unavailable"


def require_matplotlib() -> None:
    """Raise PlotUnavailable unless matplotlib is installed."""
    if find_spec("matplotlib") is None:
        raise PlotUnavailable("--plot needs matplotlib, which is not installed: pip install 'neuraxis[plot]'")


def draw_sweep(key: str, points: Sequence[tuple[str, Report]], form: str) -> bytes:
    """Return a drawing of a sweep: its values, and the result at each.

    Args:
        key: The setting.
        points: Its values, as numbers in text, and the report for each, in order.
        form: A suffix of :data:`FORMS`.

    Raises:
        PlotUnavailable: matplotlib is not installed.
    """
    require_matplotlib()
    import matplotlib
    from matplotlib.figure import Figure

    # With a salt, ids in an SVG are always the same; without, they are random.
    with matplotlib.rc_context({"svg.hashsalt": "neuraxis", "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(figsize=(8, 6), layout="constrained")
        changes, modes = figure.subplots(2, 1, sharex=True)
        values = [float(value) for value, _ in points]
        reports = [report for _, report in points]
        _draw_changes(changes, values, reports)
        _draw_modes(modes, values, reports)
        modes.set_xlabel(printable(key)[:_MAX_KEY_CHARACTERS], parse_math=False)
        for axes in (changes, modes):
            axes.set_ylim(-0.02, 1.02)
            axes.grid(alpha=0.25, linewidth=0.5)
            axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
        figure.suptitle(f"what-if over {reports[0].compared:,} exchanges")
        drawn = BytesIO()
        figure.savefig(drawn, format=form.removeprefix("."), metadata=FORMS[form])
    return drawn.getvalue()


def _draw_changes(axes: Any, values: Sequence[float], reports: Sequence[Report]) -> None:
    lines = {
        "end otherwise": ("#d55e00", [report.share for report in reports]),
        "other words alone": ("#999999", [_share(report.reworded, report) for report in reports]),
        "without end": ("#000000", [_share(sum(report.without_end.values()), report) for report in reports]),
    }
    for index, (label, (colour, shares)) in enumerate(lines.items()):
        axes.plot(values, shares, color=colour, label=label, **line_style(index, len(lines)))
    axes.set_ylabel("share of exchanges")


def _draw_modes(axes: Any, values: Sequence[float], reports: Sequence[Report]) -> None:
    shares = [mode_shares(report) for report in reports]
    modes = sorted({mode for each in shares for mode in each})
    for index, mode in enumerate(modes):
        of_mode = [each.get(mode, 0.0) for each in shares]
        axes.plot(values, of_mode, color=MODE_COLOURS.get(mode), label=mode, **line_style(index, len(modes)))
    axes.set_ylabel("share of modes")


def _share(count: int, report: Report) -> float:
    return count / report.compared if report.compared else 0.0
