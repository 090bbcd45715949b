"""Drawings of cost against size, from the records of a run of benchmarks; drawn by matplotlib."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from io import BytesIO
from typing import Any

import msgspec

from bench.harness.aims import Records

Points = Mapping[str, Sequence[tuple[float, float]]]
"""Line -> its points: size and cost."""


class Curve(msgspec.Struct, frozen=True):
    """How a benchmark's rows are drawn: ``size`` on one axis, ``cost`` on the other, a line for each of ``lines``."""

    bench: str
    title: str
    size: str
    cost: str
    lines: tuple[str, ...]


CURVES = (
    Curve("growth", "the log as it grows", "events", "p50_ms", ("case",)),
    Curve("intuition", "precedents", "motifs", "p50_us", ("case", "engine")),
    Curve("memory", "recall", "episodes", "p50_ms", ("case", "width")),
    Curve("reflex", "pattern matching", "size", "p50_us", ("library", "text")),
)


def points_of(curve: Curve, rows: Iterable[Mapping[str, Any]]) -> Points:
    """Return the lines of a curve that have several sizes, each in the order of size."""
    lines: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for row in rows:
        if row.get(curve.cost):
            lines[", ".join(str(row[field]) for field in curve.lines)].append((row[curve.size], row[curve.cost]))
    return {name: sorted(points) for name, points in lines.items() if len({size for size, _ in points}) > 1}


def drawings(records: Records) -> dict[str, bytes]:
    """Return an SVG for each benchmark in the records that measured several sizes; equal records give equal bytes."""
    found = {}
    for curve in CURVES:
        points = points_of(curve, records.get(curve.bench, ()))
        if points:
            found[f"{curve.bench}.svg"] = _draw(curve, points)
    return found


def _draw(curve: Curve, lines: Points) -> bytes:
    import matplotlib
    from matplotlib.figure import Figure

    # With this salt, the ids in an SVG are always the same; without, they are random.
    with matplotlib.rc_context({"svg.hashsalt": "neuraxis", "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(figsize=(8, 4.5), layout="constrained")
        axes = figure.subplots()
        for name, points in lines.items():
            axes.plot(*zip(*points, strict=True), marker="o", linewidth=1.3, label=name)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel(curve.size)
        axes.set_ylabel(curve.cost.replace("_", ", "))
        axes.grid(alpha=0.25, linewidth=0.5)
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
        figure.suptitle(curve.title)
        drawn = BytesIO()
        figure.savefig(drawn, format="svg", metadata={"Date": None, "Creator": "neuraxis"})
    return drawn.getvalue()
