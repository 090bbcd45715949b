"""An agent's reviews of its own prompting, as lines for people. Pure.

A signal starts a review if it exceeds its record (its highest value so far) by more than a margin, its guard; ``mad``
is the median absolute deviation of its values. Criticality, in [0, 1], is how tense the agent is. A mode of self-review
is an attitude of the agent, such as guardian or explorer. A seat is a review's vote, in [-1, 1], on an entity, that is,
on a part that the prompt was or could have been made of. A review's score rates the prompt; a measurement has
the parts of this score, and the score itself. Events name the agent ``citizen``.
"""

from collections.abc import Iterable

from rich.table import Table
from rich.text import Text

from deploy.cli.rendering.layout.printable import printable
from deploy.cli.rendering.layout.quoting import quoted_line
from deploy.cli.rendering.why.lines import Lines, lines_on, numbers_in
from schemas.vocabulary.loops import ObservedEntity, TickObserved
from schemas.vocabulary.self_review import (
    Resolved,
    SeatAdded,
    SelfReviewDisarmed,
    SelfReviewMeasured,
    SelfReviewResult,
    SelfReviewTriggered,
)


@lines_on.register
def _triggered(event: SelfReviewTriggered) -> Lines:
    head = Text(f"tick {event.tick} of {printable(event.citizen)}: ").append(", ".join(event.reasons), "bold yellow")
    return [head, Text(", ".join(f"{name} {value:g}" for name, value in numbers_in(event.metrics)), "dim")]


@lines_on.register
def _result(event: SelfReviewResult) -> Lines:
    parts = ", ".join(f"{name} {value:g}" for name, value in numbers_in(event.dimensions))
    lines = [Text(f"score {event.score:g} of {parts}")]
    if event.regret:
        swap = event.counterfactual
        line = f"better by {event.regret:g} with {printable(swap.swapped_in)} instead of {printable(swap.swapped_out)}"
        return [*lines, Text(line, "yellow")]
    return [*lines, Text("no swap of one entity would have been better", "dim")]


@lines_on.register
def _measured(event: SelfReviewMeasured) -> Lines:
    grid = Table(box=None, pad_edge=False, header_style="dim")
    grid.add_column("signal")
    for heading in ("value", "record", "guard", "median", "mad", "normalised", "weight"):
        grid.add_column(heading, justify="right")
    for name, each in event.signals.items():
        numbers = (each.value, each.record, each.guard, each.median, each.mad, each.normalised, each.weight)
        grid.add_row(name, *(f"{number:g}" for number in numbers), style="bold yellow" if each.fired else "")
    for name_of_part, part in event.parts.items():
        numbers_of_part = (f"{part.value:g}", "", "", f"{part.median:g}", f"{part.mad:g}", f"{part.normalised:g}", "")
        grid.add_row(name_of_part, *numbers_of_part)
    modes = ", ".join(f"{printable(mode)} {activation:g}" for mode, activation in event.modes.items())
    return [grid, Text(f"criticality {event.criticality:g}; modes: {modes or 'none'}", "dim")]


@lines_on.register
def _seat(event: SeatAdded) -> Lines:
    colour = "red" if event.value < 0 else "green"
    line = Text(f"{printable(event.entity)} {event.seat_type} ").append(f"{event.value:+g}", colour)
    about = ", ".join(map(quoted_line, event.context))
    return [line.append(f", {event.scope}, said on {about}" if about else f", {event.scope}", "dim")]


@lines_on.register
def _disarmed(event: SelfReviewDisarmed) -> Lines:
    why = ": the review was never resolved, and has lapsed" if event.reason == "lapsed" else ""
    return [Text(f"tick {event.tick} of {printable(event.citizen)}: reviews may start again{why}")]


@lines_on.register
def _resolved(event: Resolved) -> Lines:
    line = f"tick {event.tick} of {printable(event.citizen)}: scores "
    line += ", ".join(f"{score:g}" for score in event.recent_scores)
    return [Text(f"{line}, criticality {event.criticality:g}")]


@lines_on.register
def _ticked(event: TickObserved) -> Lines:
    line = f"arousal {event.arousal:g}, valence {event.valence:g}, novelty {event.novelty:g}"
    line += f", uncertainty {event.uncertainty:g}, fatigue {event.fatigue:g}"
    modes = ", ".join(f"{printable(mode)} {activation:g}" for mode, activation in event.modes.items())
    return [
        Text(line),
        Text(f"modes: {modes or 'none'}; working memory of {len(event.working_memory)}", "dim"),
        Text(f"chosen: {_names(event.chosen)}"),
        Text(f"candidates: {_names(event.candidates)}", "dim"),
    ]


def _names(parts: Iterable[ObservedEntity]) -> str:
    return ", ".join(f"{printable(part.id)} ({part.energy:g}, {part.tokens} tokens)" for part in parts) or "none"
