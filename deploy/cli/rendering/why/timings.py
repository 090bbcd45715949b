"""How long each event of an exchange took. Pure."""

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from deploy.cli.rendering.why.tree_layout import nodes_below
from events.replay.explain import Explanation, Node
from schemas.event import ROOT

_BAR_CELLS = 12
_US_PER_MS = 1_000


def timing_table(explanation: Explanation) -> Iterator[RenderableType]:
    """Yield for each event the time from its cause's server time to its own, and how much of that was the decision.

    The rest is for storing the cause, delivering it, waiting for a turn, and storing the event. Bars show the share of
    the time to the end; events that are not on the critical path to it are dim and have no bar. There is also no bar
    after a clock was set back, or if a lost event was stored again behind its own effects. ``over 10: 14.250`` is a
    decision that took longer than its stage's budget.
    """
    nodes = [node for root in explanation.roots for node in nodes_below(root)]
    critical_path = frozenset(explanation.critical_path)
    end_ms = next((node.since_start_ms for node in nodes if node.seq == (explanation.critical_path or (0,))[-1]), None)
    head = Text(f"time: {explanation.total_ms:g} ms in all", "bold")
    yield head.append(f", {end_ms:g} ms from the input to the end" if explanation.complete else "", "not bold")
    measured = [node for node in sorted(nodes, key=lambda node: node.seq) if node.since_start_ms]
    if measured:
        yield _table(measured, critical_path, end_ms if explanation.complete else None)


def _table(nodes: list[Node], critical_path: frozenset[int], end_ms: float | None) -> Table:
    grid = Table(box=None, pad_edge=False, header_style="dim")
    grid.add_column("event", no_wrap=True)
    for heading in ("ms", "deciding", "at"):
        grid.add_column(heading, justify="right", no_wrap=True)
    grid.add_column("share of the way", no_wrap=True)
    for node in nodes:
        deciding = "" if node.decided_us is None else f"{node.decided_us / _US_PER_MS:.3f}"
        if node.budget_us is not None:
            deciding = f"over {node.budget_us / _US_PER_MS:g}: {deciding}"
        share = node.since_cause_ms / end_ms if end_ms and node.seq in critical_path else None
        if share is not None and not 0 <= share <= 1:
            share = None
        name = node.topic.removeprefix(f"{ROOT}.")
        numbers = (f"{node.since_cause_ms:.3f}", deciding, f"+{node.since_start_ms:.3f}")
        grid.add_row(name, *numbers, _bar(share), style="" if node.seq in critical_path else "dim")
    return grid


def _bar(share: float | None) -> str:
    """Return a bar for a share in [0, 1]; nothing for none."""
    return "" if share is None else f"{share:>4.0%} {'█' * round(share * _BAR_CELLS)}"
