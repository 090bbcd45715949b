"""Lines of a drawing that coincide are all seen."""

import pytest

from deploy.cli.rendering.layout.line_styles import line_style
from tests.each import each


@each("count", [1, 2, 3, 5, 8])
def test_each_line_is_narrower_than_the_one_it_lies_on(count: int) -> None:
    widths = [line_style(place, count)["linewidth"] for place in range(count)]
    assert widths == sorted(widths, reverse=True)
    assert len(set(widths)) == count
    assert all(1.0 <= width <= 6.0 for width in widths)
    heights = [line_style(place, count)["zorder"] for place in range(count)]
    assert heights == sorted(heights)


def test_neighbours_have_different_markers() -> None:
    markers = [line_style(place, 5)["marker"] for place in range(5)]
    assert len(set(markers)) == 5
    assert "marker" not in line_style(0, 2, marked=False)


def test_a_coinciding_line_leaves_some_of_the_one_below_visible() -> None:
    pytest.importorskip("matplotlib", reason="plots need the extra neuraxis[plot]")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3, 2), dpi=300)
    canvas = FigureCanvasAgg(figure)
    axes = figure.subplots()
    colours = ("#ff0000", "#00ff00", "#0000ff")
    for place, colour in enumerate(colours):
        axes.plot([0, 1, 2], [1, 1, 1], color=colour, **line_style(place, len(colours)))
    canvas.draw()
    seen = {tuple(pixel[:3]) for row in canvas.buffer_rgba().tolist() for pixel in row}
    assert {(255, 0, 0), (0, 255, 0), (0, 0, 255)} <= seen
