"""What the benchmarks should reach, and what they found: one table, made from the records of a run."""

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

Records = Mapping[str, Sequence[Mapping[str, Any]]]
"""Benchmark -> the rows that it recorded."""


class Aim(msgspec.Struct, frozen=True):
    """A figure that a benchmark should reach.

    Attributes:
        what: What is measured.
        bench: The benchmark that measures it.
        where: Which of its rows count: fields and their values; a text that ends in ``*`` is a prefix.
        figure: The field with the figure; ``ratio: PEER`` for its ratio to that of the peer whose name
            begins with PEER.
        bound: What it should reach; the figure's unit.
        unit: The figure's unit.
        most: Whether ``bound`` is the most that it may be, rather than the least.
        peers: Name of a peer -> the field with its figure, which is shown as a multiple of this one.
    """

    what: str
    bench: str
    where: Mapping[str, object]
    figure: str
    bound: float
    unit: str
    most: bool = True
    peers: Mapping[str, str] = {}


class Outcome(msgspec.Struct, frozen=True):
    """An aim, and what a run found.

    ``reach`` is the bound in words, such as ``at most 50``; ``found`` the figure (None if the benchmark did not run),
    ``reached`` whether it is within the bound. ``ratios`` has, by peer, how many times as large the one figure is as
    the other.
    """

    what: str
    bench: str
    reach: str
    found: float | None
    unit: str
    reached: bool | None
    ratios: Mapping[str, float]


_REFLEX = {"library": "synthetic", "text": "ascii", "size": 2_048}
_REFLEX_PEERS = {"loop of `in`": "loop_p50_us", "one regular expression": "re_p50_us"}
_MILLION = {"motifs": 1_000_000}
_ARBITER = "neuraxis, to the arbiter"

AIMS = (
    Aim("reflex, 10,000 signatures, 2 KB, p50", "reflex", _REFLEX, "p50_us", 50, "µs", peers=_REFLEX_PEERS),
    Aim("the same, p99", "reflex", _REFLEX, "p99_us", 500, "µs"),
    Aim("the same with decoded views, p99", "reflex", _REFLEX, "views_p99_us", 1_000, "µs"),
    Aim("the same, 100 KB, p99", "reflex", {**_REFLEX, "size": 102_400}, "p99_us", 2_000, "µs"),
    Aim("nearest of a million motifs, p50", "intuition", {**_MILLION, "case": "motif"}, "p50_us", 50, "µs"),
    Aim("the same, p99", "intuition", {**_MILLION, "case": "motif"}, "p99_us", 1_000, "µs"),
    Aim("adding a motif to a million, p50", "intuition", {**_MILLION, "case": "added"}, "p50_us", 20, "µs"),
    Aim("choosing a mode, p99", "router", {"case": "question"}, "p99_us", 100, "µs"),
    Aim(
        "input to arbiter at 100/s, p50",
        "guards",
        {"case": _ARBITER, "setting": "sync always, 100/s, p50"},
        "value",
        8,
        "ms",
    ),
    Aim("the same, p99", "guards", {"case": _ARBITER, "setting": "sync always, 100/s, p99"}, "value", 25, "ms"),
    Aim(
        "four hops, pipelines",
        "hops",
        {"case": "neuraxis", "setting": "sync always, 512 under way", "unit": "pipelines/s"},
        "ratio: faststream, pull",
        5,
        "x FastStream",
        most=False,
    ),
    Aim(
        "four hops at 100/s, p50",
        "hops",
        {"case": "neuraxis", "setting": "sync always, 100/s, p50"},
        "ratio: faststream, pull",
        1,
        "x FastStream",
    ),
    Aim(
        "exchanges that the set answers",
        "exchanges",
        {"case": "neuraxis", "setting": "saturated*"},
        "value",
        300,
        "a second",
        most=False,
    ),
    Aim("the same at 20/s, p50", "exchanges", {"case": "neuraxis", "setting": "20/s, p50"}, "value", 20, "ms"),
    Aim("the same at 20/s, p99", "exchanges", {"case": "neuraxis", "setting": "20/s, p99"}, "value", 60, "ms"),
    Aim(
        "fenced append",
        "append",
        {"case": "fenced append", "setting": "sync always, 16 in flight"},
        "ratio: js.publish",
        0.8,
        "x js.publish",
        most=False,
    ),
    Aim(
        "counting fold of a ledger",
        "ledger",
        {"case": "ledger counting fold"},
        "events_per_s",
        500_000,
        "events/s",
        most=False,
    ),
    Aim("state of all actors from a ledger", "replay", {"case": "fold"}, "value", 150_000, "events/s", most=False),
    Aim("ledger append", "ledger", {"case": "ledger append, batches*"}, "events_per_s", 50_000, "events/s", most=False),
    Aim("installed, without extras", "exchanges", {"setting": "install"}, "value", 200, "MB"),
    Aim("resident, the whole set", "exchanges", {"case": "resident*"}, "value", 700, "MB"),
    Aim("start to the first answer", "exchanges", {"case": "start*"}, "value", 5, "s"),
    Aim("fenced append as the log grows", "growth", {"case": "fenced append"}, "ratio", 1.5, "x the smallest log"),
)
"""What the product should reach, in the order of the table."""

BENCHES = tuple(dict.fromkeys(aim.bench for aim in AIMS))
"""The benchmarks that measure these figures."""


def outcomes(records: Records, aims: Sequence[Aim] = AIMS) -> list[Outcome]:
    """Return what a run found of each aim. Of several rows that fit an aim, the worst counts."""
    return [_outcome(aim, records.get(aim.bench, ())) for aim in aims]


def _outcome(aim: Aim, rows: Sequence[Mapping[str, Any]]) -> Outcome:
    fitting = [row for row in rows if all(_matches(row.get(field), wanted) for field, wanted in aim.where.items())]
    figures = [(found, row) for row in fitting if (found := _figure(aim, row)) is not None]
    worse, sign = (max, "at most") if aim.most else (min, "at least")
    reach = f"{sign} {aim.bound:,g}"
    if not figures:
        return Outcome(aim.what, aim.bench, reach, None, aim.unit, None, {})
    found, row = worse(figures, key=operator.itemgetter(0))
    ratios = {peer: round(row[field] / found, 2) for peer, field in aim.peers.items() if row.get(field)}
    within: Callable[[float, float], bool] = operator.le if aim.most else operator.ge
    ratios |= row.get("ratios") or {}
    return Outcome(aim.what, aim.bench, reach, found, aim.unit, within(found, aim.bound), ratios)


def _matches(found: object, wanted: object) -> bool:
    if isinstance(wanted, str) and wanted.endswith("*"):
        return str(found).startswith(wanted[:-1])
    return found == wanted


def _figure(aim: Aim, row: Mapping[str, Any]) -> float | None:
    peer = aim.figure.removeprefix("ratio: ")
    if peer == aim.figure:
        return row.get(aim.figure)
    return next((ratio for name, ratio in row["ratios"].items() if name.startswith(peer)), None)


def table(found: Sequence[Outcome]) -> str:
    """Return outcomes as a table of text."""
    lines = [("what", "reach", "found", "", "", "beside")]
    for each in found:
        value = "not run" if each.found is None else f"{each.found:,.4g}"
        mark = "" if each.reached is None else "yes" if each.reached else "no"
        ratios = ", ".join(f"{ratio:g} x {peer}" for peer, ratio in each.ratios.items())
        lines.append((each.what, each.reach, value, each.unit, mark, ratios))
    widths = [max(len(line[column]) for line in lines) for column in range(5)]
    return "\n".join(
        "  ".join((*(text.ljust(width) for text, width in zip(line, widths, strict=False)), line[5])).rstrip()
        for line in lines
    )
