"""Each event of an exchange, with the numbers of its decision, as lines for people. Pure.

``docs/decisions-explained.md`` explains every number.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from actors.coherence.settings import CoherenceSettings
from actors.router.settings import RouterSettings
from deploy.cli.rendering.layout.printable import printable, printable_struct
from deploy.cli.rendering.layout.quoting import quoted_line
from deploy.cli.rendering.model_calls import cuts_text
from deploy.cli.rendering.reason_texts import ENDINGS, LET_PASS

# Each of these modules registers its events' functions with ``lines_on``.
from deploy.cli.rendering.why import idle_thoughts, loops, reflections, regulation, reviews  # noqa: F401
from deploy.cli.rendering.why.answer_sources import entities
from deploy.cli.rendering.why.guards import allowed_lines, entropy, unread_lines
from deploy.cli.rendering.why.lines import Lines, field_text, lines_on
from deploy.cli.rendering.why.recalculated import ModeScore, adds_up, score_table, sum_of
from schemas.event import Event
from schemas.vocabulary.clock import ClockFired
from schemas.vocabulary.coherence import CoherencePassed, CoherenceRejected
from schemas.vocabulary.gateway import InputAbandoned, InputAnswered, InputReceived, Purpose
from schemas.vocabulary.reflex import Match, ReflexBlocked, ReflexPassed
from schemas.vocabulary.responder import ResponseEmitted
from schemas.vocabulary.router import ModeSelected, Signals

_CONTEXT_CHARACTERS = 24
"""Characters of the input that are shown on each side of a match."""

_PURPOSES: Mapping[Purpose, str] = {
    "check": "to be checked only",
    "forward": "forwarded once the guards have let it pass",
}
_LAYER_VIEW = re.compile(r"^[a-z]+\[(\d+)\]:plain$")
"""The plain view of a layer, such as ``document[1]:plain``; the group is the layer's index. Other views are decoded."""


class LineContext(msgspec.Struct, frozen=True):
    """What the lines about a decision need besides its event: the exchange's input, and settings (None: defaults)."""

    received: InputReceived | None = None
    router: RouterSettings | None = None
    coherence: CoherenceSettings | None = None


def details(event: Event, context: LineContext) -> Lines:
    """Return what an event says, in lines and tables, without control characters."""
    event = printable_struct(event)
    with_context = WITH_CONTEXT.get(type(event))
    return lines_on(event) if with_context is None else with_context(event, context)


@lines_on.register
def _received(event: InputReceived) -> Lines:
    lines: list[RenderableType] = [Text(quoted_line(event.text), "italic") if event.text else Text("(empty)", "dim")]
    lines += [Text(f"{layer.role}: {quoted_line(layer.content)}", "italic") for layer in event.layers]
    facts = [_PURPOSES[event.purpose]] if event.purpose in _PURPOSES else []
    facts += [f"rerun of {event.rerun_of}"] if event.rerun_of else []
    facts += [f"label {event.label}"] if event.label else []
    facts += [f"situation {event.situation}"] if event.situation != "general" else []
    facts += [f"{event.left_out:,} layers beyond what anybody looks at"] if event.left_out else []
    facts += [f"deadline {event.deadline_after_ms / 1000:g} s"]
    return [*lines, Text(", ".join(facts), "dim")]


@lines_on.register
def _input_answered(event: InputAnswered) -> Lines:
    lines: list[RenderableType] = []
    for choice in event.choices:
        lines.append(Text(quoted_line(choice.text), "italic") if choice.text else Text("(no words)", "dim"))
        lines += [Text(f"calls {printable(each.name)}: {quoted_line(each.arguments)}") for each in choice.tool_calls]
        lines += [Text(f"ended by {printable(choice.finish_reason)}", "dim")] if choice.finish_reason else []
    facts = [f"model {printable(event.model)}"] if event.model else []
    facts += [f"{event.prompt_tokens:,} tokens of prompt"] if event.prompt_tokens is not None else []
    facts += [f"{event.completion_tokens:,} of answer"] if event.completion_tokens is not None else []
    facts += [f"{event.left_out:,} characters not recorded"] if event.left_out else []
    return [*lines, Text(", ".join(facts), "dim")] if facts else lines


def _blocked(event: ReflexBlocked, context: LineContext) -> Lines:
    return [*(_match(match, context.received) for match in event.matches), *unread_lines(event.unread)]


def _passed(event: ReflexPassed, context: LineContext) -> Lines:
    flags = [_match(flag, context.received) for flag in event.flags] or [Text("no signature matched", "dim")]
    return [*flags, *allowed_lines(event.allowed), *unread_lines(event.unread)]


def _match(match: Match, received: InputReceived | None) -> Text:
    start, end = match.span
    line = Text()
    line.append(f"{match.action} {match.pattern}", "bold red" if match.action == "BLOCK" else "yellow")
    line.append(
        f": signature {quoted_line(match.signature)}, confidence {match.confidence:g}, characters {start}-{end}"
    )
    line.append("" if match.view == "plain" else f" of {match.view}")
    text = _text_of(match.view, received)
    if text is not None:
        before, after = text[max(0, start - _CONTEXT_CHARACTERS) : start], text[end : end + _CONTEXT_CHARACTERS]
        line.append("  …" if start > _CONTEXT_CHARACTERS else "  ").append(printable(before), "dim")
        line.append(printable(text[start:end]), "reverse").append(printable(after), "dim")
        line.append("…" if end + _CONTEXT_CHARACTERS < len(text) else "")
    return line


def _text_of(view: str, received: InputReceived | None) -> str | None:
    """Return the text to which a plain view's offsets refer; None for decoded views, whose text is not recorded."""
    if received is None or view == "plain":
        return received.text if received is not None else None
    layer = _LAYER_VIEW.match(view)
    index = int(layer[1]) if layer else len(received.layers)
    return received.layers[index].content if index < len(received.layers) else None


def _coherence_verdict(event: CoherencePassed | CoherenceRejected, context: LineContext) -> Lines:
    return [*entropy(event), Text(sum_of(event, context.coherence), "dim")]


def _selected(event: ModeSelected, context: LineContext) -> Lines:
    mode = Text().append(event.selected_mode, "bold")
    if event.terminal_mode not in (None, event.selected_mode):
        mode.append(f", answered as {event.terminal_mode}")
    mode.append(", chosen again after an ACT loop" if event.rerouted else "")
    mode.append(
        f" ({event.reason}), confidence {event.router_confidence:g}, previous mode {event.previous_mode or '-'}"
    )
    lines: list[RenderableType] = [mode, _margin(event), _signals(event.signals)]
    table = score_table(event, context.router)
    if not table:
        return [*lines, Text(", ".join(f"{name} {score:g}" for name, score in event.scores.items()))]
    lines.append(_scores(table))
    if not adds_up(table):
        lines.append(Text("the terms do not add up to the recorded scores: decided with other thresholds", "yellow"))
    return lines


def _margin(event: ModeSelected) -> Text:
    line = Text(f"margin {event.margin:g}, effective margin {event.effective_margin:g}: ")
    if not event.tiebreaker_candidates:
        return line.append("clear")
    settled = "tie-breaker" if event.tiebreaker_used else "no tie-breaker"
    pair = " and ".join(event.tiebreaker_candidates)
    return line.append(f"ambiguous between {pair}, settled by {event.tiebreaker_outcome} ({settled})")


def _signals(signals: Signals) -> Text:
    """Return every signal that is set, by its name in the event."""
    found = [
        name if value is True else f"{name} {field_text(value)}"
        for name, value in msgspec.structs.asdict(signals).items()
        if value not in (False, None, (), 0)
    ]
    return Text(f"signals: {', '.join(found) or 'none'}", "dim")


def _scores(table: Sequence[ModeScore]) -> Table:
    grid = Table(box=None, pad_edge=False, header_style="dim")
    grid.add_column("mode")
    grid.add_column("score", justify="right")
    grid.add_column("terms", overflow="fold")
    for index, score in enumerate(table):
        terms = "  ".join(f"{value:+.3f} {name}" for name, value in score.terms.items() if value)
        grid.add_row(score.mode, f"{score.recorded:.3f}", terms, style="bold" if index == 0 else "")
    return grid


@lines_on.register
def _response_emitted(event: ResponseEmitted) -> Lines:
    colour = "green" if event.action in LET_PASS else "red"
    verdict = Text().append(event.action, f"bold {colour}").append(f" at {event.stage}, because {event.reason}")
    if event.mode is not None:
        verdict.append(f", mode {event.mode} (first {event.first_mode})")
    if event.action == "PASSED":
        return [verdict]
    verdict.append(f", written by {event.backend}{f' ({event.model})' if event.model else ''}")
    verdict.append(f", of loop {event.loop_id}" if event.loop_id else "")
    answer = Text(quoted_line(event.response), "italic") if event.response else Text("(no words)", "dim")
    return [verdict, answer, *_what_is_missing(event), *_identity(event), *entities(event.entities)]


def _what_is_missing(event: ResponseEmitted) -> Lines:
    ended = ENDINGS.get(event.finish_reason, "")
    lines = ([f"not whole: {ended}"] if ended else []) + ([cuts_text(event.cuts)] if event.cuts else [])
    return [Text(each, "yellow") for each in lines]


def _identity(event: ResponseEmitted) -> Lines:
    """Return how much of the soul, the prompt's text on who the agent is, the answer took up."""
    used = event.identity
    if used is None:
        return []
    line = f"took up {len(used.current)} of {len(used.stable)} parts of the soul, overlap {used.overlap:g}"
    return [Text(f"{line}{': ' if used.current else ''}{', '.join(used.current)}", "dim")]


@lines_on.register
def _clock_fired(event: ClockFired) -> Lines:
    return [Text(f"the deadline that {event.set_by} had set passed", "red")]


@lines_on.register
def _abandoned(event: InputAbandoned) -> Lines:
    status = f", its endpoint answered with status {event.status}" if event.status is not None else ""
    withheld = f"; its words were withheld: {', '.join(event.withheld_for)}" if event.withheld_for else ""
    return [Text(f"no answer: {event.reason}{status}{withheld}", "red")]


WITH_CONTEXT: Mapping[type[Event], Callable[[Any, LineContext], Lines]] = {
    ReflexBlocked: _blocked,
    ReflexPassed: _passed,
    ModeSelected: _selected,
    CoherencePassed: _coherence_verdict,
    CoherenceRejected: _coherence_verdict,
}
"""Event type -> a function that also needs the :class:`LineContext`; all other events are shown by themselves."""
