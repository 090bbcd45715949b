"""A model's second look at routing decisions, as lines for people. Pure.

A stratum is why a decision is looked at again, such as its low confidence; a dimension says in what it was ambiguous.
A pressure is disagreement that lasts: the regulator may then change a weight of the router.
"""

from collections import Counter
from collections.abc import Iterable

from rich.table import Table
from rich.text import Text

from deploy.cli.rendering.layout.counted_nouns import counted
from deploy.cli.rendering.layout.printable import printable
from deploy.cli.rendering.why.lines import Lines, lines_on
from schemas.vocabulary.reflection import Insight, ReflectionConcluded, ReflectionRequested, ReflectionScheduled


@lines_on.register
def _scheduled(event: ReflectionScheduled) -> Lines:
    return [Text(f"looks back in {event.wake_after_ms / 1000:g} s, if no exchange is open then", "dim")]


@lines_on.register
def _requested(event: ReflectionRequested) -> Lines:
    strata = Counter(each.stratum for each in event.batch)
    listed = ", ".join(f"{count} {stratum.replace('_', ' ')}" for stratum, count in strata.items())
    return [Text(f"a model is asked for a second opinion on {counted(len(event.batch), 'decision')}: {listed}")]


@lines_on.register
def _concluded(event: ReflectionConcluded) -> Lines:
    line = Text(f"disagreement {event.disagreement:g} of {event.counted} opinions that count")
    if event.dominant is not None:
        line.append(f", {event.dominant_share:g} of it over {event.dominant}")
    line.append(": a pressure" if event.pressure else ": no pressure", "bold yellow" if event.pressure else "dim")
    if event.reason:
        return [Text(f"no second opinion: {printable(event.reason)}", "red"), line]
    return [line, _table(event.insights)]


def _table(insights: Iterable[Insight]) -> Table:
    grid = Table(box=None, pad_edge=False, header_style="dim")
    for heading in ("exchange", "why looked at", "selected", "suggested", "dimension"):
        grid.add_column(heading)
    grid.add_column("confidence", justify="right")
    grid.add_column("counts")
    for each in insights:
        counts = "yes" if each.counts else f"no: {each.ignored}"
        cells = (printable(each.exchange)[:12], each.stratum, each.selected_mode, each.suggested_mode, each.dimension)
        style = "yellow" if each.counts and not each.agrees else ""
        grid.add_row(*cells, f"{each.confidence:g}", counts, style=style)
    return grid
