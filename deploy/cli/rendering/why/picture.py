"""The causal tree of an exchange as a picture: each event's name, verdict and time, as SVG. Pure.

It is written by the standard library's XML writer, which escapes text. People's words in it are limited in length and
printable. The same exchange gives the same bytes.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

import msgspec
from rich.text import Text

from deploy.cli.rendering.layout.counted_nouns import counted
from deploy.cli.rendering.layout.printable import printable
from deploy.cli.rendering.layout.quoting import shortened
from deploy.cli.rendering.why.details import LineContext, details
from deploy.cli.rendering.why.tree import event_of, last_of, trunk_to_end
from events.replay.explain import Explanation, Node
from schemas.event import ROOT
from schemas.vocabulary.gateway import InputReceived

MAX_EVENTS = 400
"""How many events are drawn; the number of the others is written below them."""

MAX_CHARACTERS = 86
"""Longest line in a box; longer ones are cut, and are whole in the box's tooltip."""

_MAX_TOOLTIP_CHARACTERS = 400

# In pixels: the height of a row and of its box, a step of indentation, and the margin. _MAX_DEPTH: most such steps.
_ROW, _BOX, _INDENT, _MARGIN, _MAX_DEPTH = 46, 36, 26, 16, 12
_LEGEND, _SWATCH = 34, 22  # the legend's height, and the width of the sample before each of its entries
_BOX_WIDTH, _LANE, _LABEL = 640, 240, 92  # a box, the lane of time bars beside the boxes, and a bar's label
_STOPPING_EVENTS = ("blocked", "rejected", "denied", "tripped", "terminated", "failed", "fired", "refused", "timed_out")
"""The ends of the names of events that stop an exchange or fail; their boxes are red."""

_STYLE = (
    "text{font:12px ui-monospace,Menlo,Consolas,DejaVu Sans Mono,monospace;fill:#1a1a1a}"
    ".name{font-weight:bold}.dim{fill:#595959}.box{fill:#f6f8fa;stroke:#57606a}.stop{fill:#fff1f0;stroke:#b3261e;stroke-width:2}"
    ".link{fill:none;stroke:#57606a}.bar{fill:#0072b2}.beside{fill:#9bb8cc}"
)


class _Row(msgspec.Struct, frozen=True):
    """An event in the picture, its level of indentation, and the number of its cause's row; None for a root."""

    node: Node
    depth: int
    above: int | None


def picture_of(explanation: Explanation) -> bytes:
    """Return the picture, an SVG document in UTF-8 with a title and a description for people who cannot see it."""
    rows = list(_rows(explanation))
    drawn = rows[:MAX_EVENTS]
    depth = max((min(row.depth, _MAX_DEPTH) for row in drawn), default=0)
    lane = _MARGIN + depth * _INDENT + _BOX_WIDTH + _MARGIN
    width, height = lane + _LANE + _LABEL + _MARGIN, _top(min(len(rows), len(drawn) + 1)) + _LEGEND + _MARGIN
    size = {"width": str(width), "height": str(height), "viewBox": f"0 0 {width} {height}"}
    svg = Element(
        "svg", {"xmlns": "http://www.w3.org/2000/svg", **size, "role": "img", "aria-labelledby": "title desc"}
    )
    SubElement(svg, "title", {"id": "title"}).text = _cut(f"Exchange {explanation.exchange}, as a tree of causes")
    SubElement(svg, "desc", {"id": "desc"}).text = _description(explanation, rows)
    SubElement(svg, "style").text = _STYLE
    SubElement(svg, "rect", {"width": "100%", "height": "100%", "fill": "#ffffff"})
    _text(svg, _MARGIN, _MARGIN + 12, f"exchange {explanation.exchange}", "name")
    whose = f"agent {explanation.agent}  session {explanation.session}  {explanation.total_ms:g} ms in all"
    _text(svg, _MARGIN, _MARGIN + 30, whose, "dim")
    received = last_of(explanation, InputReceived)
    context = LineContext(received[1] if received is not None else None)
    for index, row in enumerate(drawn):
        _draw(svg, index, row, drawn, lane, explanation, context)
    if len(rows) > len(drawn):
        _text(svg, _MARGIN, _top(len(drawn)) + 20, f"and {len(rows) - len(drawn)} more events", "dim")
    _text(svg, lane, _top(0) - 8, f"0 to {explanation.total_ms:g} ms", "dim")
    _draw_legend(svg, height - _MARGIN - _LEGEND // 2)
    ElementTree.indent(svg)
    document: bytes = ElementTree.tostring(svg, encoding="utf-8", xml_declaration=True)
    return document + b"\n"


def _rows(explanation: Explanation) -> Iterator[_Row]:
    """Yield the events from top to bottom."""
    critical_path = frozenset(explanation.critical_path)
    waiting: list[tuple[Node, int, int | None]] = [(root, 0, None) for root in reversed(explanation.roots)]
    row_of: dict[str, int] = {}
    while waiting:
        root, depth, above = waiting.pop()
        below: list[tuple[Node, int, int | None]] = []
        # A branch is drawn directly below its cause, before the trunk goes on.
        (node, branches), *rest = islice(trunk_to_end(root, critical_path), 2)
        row_of[node.id] = len(row_of)
        yield _Row(node, depth, above)
        if rest:
            below.append((rest[0][0], depth, row_of[node.id]))
        waiting += below + [(branch, depth + 1, row_of[node.id]) for branch in reversed(branches)]


def _draw(
    svg: Element, index: int, row: _Row, rows: Sequence[_Row], lane: int, explanation: Explanation, context: LineContext
) -> None:
    node, left, top = row.node, _left(row), _top(index)
    name, verdict = node.topic.removeprefix(f"{ROOT}."), _verdict(node, context)
    group = SubElement(svg, "g")
    SubElement(group, "title").text = _cut(f"{name}, sequence {node.seq}: {verdict}", _MAX_TOOLTIP_CHARACTERS)
    if row.above is not None:
        from_x, from_y, to_y = _left(rows[row.above]) + 10, _top(row.above) + _BOX, top + _BOX // 2
        SubElement(group, "path", {"class": "link", "d": f"M{from_x} {from_y}V{to_y}H{max(left, from_x)}"})
    kind = "stop" if name.rpartition(".")[2].endswith(_STOPPING_EVENTS) else "box"
    place_of_box = {"x": str(left), "y": str(top), "width": str(_BOX_WIDTH), "height": str(_BOX)}
    SubElement(group, "rect", {"class": kind, **place_of_box, "rx": "5"})
    inside = SubElement(group, "svg", place_of_box)  # clips what is wider than it
    _text(inside, 8, 14, f"{name}  sequence {node.seq}", "name")
    _text(inside, 8, 29, verdict, "dim")
    total = explanation.total_ms or 1.0
    start, end = (
        max(0.0, min(1.0, ms / total)) for ms in (node.since_start_ms - node.since_cause_ms, node.since_start_ms)
    )
    bar = {"x": f"{lane + start * _LANE:.1f}", "y": str(top + 12), "width": f"{max(1.0, (end - start) * _LANE):.1f}"}
    colour = "bar" if node.seq in explanation.critical_path else "beside"
    SubElement(group, "rect", {"class": colour, **bar, "height": "12"})
    _text(group, lane + _LANE + 8, top + 22, f"+{node.since_start_ms:g} ms", "dim")


_LEGEND_TEXTS = (
    ("box", "an event"),
    ("stop", "one that stops or fails"),
    ("link", "what follows from it"),
    ("bar", "time, on the way to the end"),
    ("beside", "time, beside that way"),
)
"""Class of a shape -> what it stands for, in the order of the legend."""


def _draw_legend(svg: Element, middle: int) -> None:
    """Draw what each kind of box, line and bar stands for, in a row around the height ``middle``."""
    group, left = SubElement(svg, "g", {"class": "legend"}), _MARGIN
    for kind, meaning in _LEGEND_TEXTS:
        if kind == "link":
            SubElement(group, "path", {"class": kind, "d": f"M{left} {middle - 7}V{middle}H{left + _SWATCH}"})
        else:
            swatch = {"x": str(left), "y": str(middle - 7), "width": str(_SWATCH), "height": "14", "rx": "3"}
            SubElement(group, "rect", {"class": kind, **swatch})
        _text(group, left + _SWATCH + 8, middle + 4, meaning, "dim")
        left += _SWATCH + 8 + len(meaning) * 8 + 20


def _left(row: _Row) -> int:
    return _MARGIN + min(row.depth, _MAX_DEPTH) * _INDENT


def _top(index: int) -> int:
    return _MARGIN + (index + 1) * _ROW


def _verdict(node: Node, context: LineContext) -> str:
    lines = details(event_of(node), context)
    return next((line.plain for line in lines if isinstance(line, Text)), "")


def _description(explanation: Explanation, rows: Sequence[_Row]) -> str:
    names = ", ".join(row.node.topic.removeprefix(f"{ROOT}.") for row in rows[:MAX_EVENTS])
    absent = f" Never reached: {', '.join(explanation.unreached)}." if explanation.unreached else ""
    return printable(f"{counted(len(rows), 'event')}, causes above what they led to: {names}.{absent}")


def _text(parent: Element, x: int, y: int, line: str, kind: str) -> None:
    SubElement(parent, "text", {"x": str(x), "y": str(y), "class": kind}).text = _cut(line)


def _cut(line: str, max_characters: int = MAX_CHARACTERS) -> str:
    return shortened(printable(line), max_characters)
