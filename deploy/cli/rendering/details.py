"""The numbers that each recorded decision rested on, as lines for people. Pure."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from actors.coherence.settings import CoherenceSettings
from actors.router.settings import RouterSettings
from deploy.cli.rendering.calls import told_cuts
from deploy.cli.rendering.drifting import DRIFT_DETAILS
from deploy.cli.rendering.entropy import sum_of
from deploy.cli.rendering.guards import GUARD_DETAILS, allowed_lines, entropy, unread_lines
from deploy.cli.rendering.loops import LOOP_DETAILS
from deploy.cli.rendering.mind import MIND_DETAILS, entities
from deploy.cli.rendering.printable import printable, printable_struct
from deploy.cli.rendering.quoting import quoted
from deploy.cli.rendering.reasons import ENDINGS, LET_PASS
from deploy.cli.rendering.reflections import REFLECTION_DETAILS
from deploy.cli.rendering.regulation import REGULATION_DETAILS
from deploy.cli.rendering.reviews import REVIEW_DETAILS
from deploy.cli.rendering.routing import ModeScore, adds_up, score_table
from schemas.event import Configured, Event, Failed
from schemas.vocabulary.clock import ClockFired
from schemas.vocabulary.coherence import CoherencePassed, CoherenceRejected
from schemas.vocabulary.gateway import InputAnswered, InputReceived, Purpose
from schemas.vocabulary.llm import LlmFailed
from schemas.vocabulary.reflex import Match, ReflexBlocked, ReflexPassed
from schemas.vocabulary.responder import ResponseEmitted
from schemas.vocabulary.router import ModeSelected, Signals

_AROUND = 24
_PURPOSES: Mapping[Purpose, str] = {
    "check": "to be checked only",
    "forward": "forwarded once the guards have let it pass",
}
_LAYER_VIEW = re.compile(r"^[a-z]+\[(\d+)\]:plain$")


class Case(msgspec.Struct, frozen=True):
    """What the lines about a decision need besides it: the exchange's input, and settings in force (None: defaults)."""

    received: InputReceived | None = None
    router: RouterSettings | None = None
    coherence: CoherenceSettings | None = None


def details(event: Event, case: Case) -> Sequence[RenderableType]:
    """Return what an event says, in lines and tables, with nothing in it that a terminal obeys."""
    return _details(printable_struct(event), case)


def _details(event: Event, case: Case) -> Sequence[RenderableType]:
    if isinstance(event, Failed):
        line = Text(f"{event.reason} {event.error} at {event.failed_topic}, sequence {event.failed_seq}", "red")
        said = event.said if isinstance(event, LlmFailed) else ""
        return [line, *([Text(f"the endpoint said: {quoted(said)}", "red")] if said else [])]
    if isinstance(event, Configured):
        return [Text(f"behaviour {event.behaviour}, settings {event.settings_hash[:12]}")]
    kind = type(event)
    tell = _DETAILS.get(kind)
    if tell is not None:
        return tell(event, case)
    plain = GUARD_DETAILS.get(kind) or MIND_DETAILS.get(kind) or LOOP_DETAILS.get(kind) or REVIEW_DETAILS.get(kind)
    plain = plain or REFLECTION_DETAILS.get(kind) or DRIFT_DETAILS.get(kind)
    plain = plain or REGULATION_DETAILS.get(kind)
    return plain(event) if plain is not None else _fields(event)


def _received(event: InputReceived, case: Case) -> Sequence[RenderableType]:
    lines: list[RenderableType] = [Text(quoted(event.text), "italic") if event.text else Text("(empty)", "dim")]
    lines += [Text(f"{layer.role}: {quoted(layer.content)}", "italic") for layer in event.layers]
    facts = [_PURPOSES[event.purpose]] if event.purpose in _PURPOSES else []
    facts += [f"label {event.label}"] if event.label else []
    facts += [f"situation {event.situation}"] if event.situation != "general" else []
    facts += [f"{event.left_out:,} layers beyond what anybody looks at"] if event.left_out else []
    facts += [f"deadline {event.deadline_after_ms / 1000:g} s"]
    return [*lines, Text(", ".join(facts), "dim")]


def _told(event: InputAnswered, case: Case) -> Sequence[RenderableType]:
    lines: list[RenderableType] = []
    for choice in event.choices:
        lines.append(Text(quoted(choice.text), "italic") if choice.text else Text("(no words)", "dim"))
        lines += [Text(f"calls {printable(each.name)}: {quoted(each.arguments)}") for each in choice.tool_calls]
        lines += [Text(f"ended by {printable(choice.finish_reason)}", "dim")] if choice.finish_reason else []
    facts = [f"model {printable(event.model)}"] if event.model else []
    facts += [f"{event.prompt_tokens:,} tokens of prompt"] if event.prompt_tokens is not None else []
    facts += [f"{event.completion_tokens:,} of answer"] if event.completion_tokens is not None else []
    facts += [f"{event.left_out:,} characters not recorded"] if event.left_out else []
    return [*lines, Text(", ".join(facts), "dim")] if facts else lines


def _blocked(event: ReflexBlocked, case: Case) -> Sequence[RenderableType]:
    return [*(_match(match, case.received) for match in event.matches), *unread_lines(event.unread)]


def _passed(event: ReflexPassed, case: Case) -> Sequence[RenderableType]:
    flags = [_match(flag, case.received) for flag in event.flags] or [Text("no signature matched", "dim")]
    return [*flags, *allowed_lines(event.allowed), *unread_lines(event.unread)]


def _match(match: Match, received: InputReceived | None) -> Text:
    start, end = match.span
    line = Text()
    line.append(f"{match.action} {match.pattern}", "bold red" if match.action == "BLOCK" else "yellow")
    line.append(f": signature {quoted(match.signature)}, confidence {match.confidence:g}, characters {start}-{end}")
    line.append("" if match.view == "plain" else f" of {match.view}")
    text = _text_of(match.view, received)
    if text is not None:
        before, after = text[max(0, start - _AROUND) : start], text[end : end + _AROUND]
        line.append("  …" if start > _AROUND else "  ").append(printable(before), "dim")
        line.append(printable(text[start:end]), "reverse").append(printable(after), "dim")
        line.append("…" if end + _AROUND < len(text) else "")
    return line


def _text_of(view: str, received: InputReceived | None) -> str | None:
    """Return the text that a plain view's offsets are into; None for decoded views, whose text is not recorded."""
    if received is None or view == "plain":
        return received.text if received is not None else None
    layer = _LAYER_VIEW.match(view)
    place = int(layer[1]) if layer else len(received.layers)
    return received.layers[place].content if place < len(received.layers) else None


def _weighed(event: CoherencePassed | CoherenceRejected, case: Case) -> Sequence[RenderableType]:
    return [*entropy(event), Text(sum_of(event, case.coherence), "dim")]


def _selected(event: ModeSelected, case: Case) -> Sequence[RenderableType]:
    mode = Text().append(event.selected_mode, "bold")
    if event.terminal_mode not in (None, event.selected_mode):
        mode.append(f", answered as {event.terminal_mode}")
    mode.append(", chosen again after an ACT loop" if event.rerouted else "")
    mode.append(
        f" ({event.reason}), confidence {event.router_confidence:g}, previous mode {event.previous_mode or '-'}"
    )
    lines: list[RenderableType] = [mode, _margin(event), _signals(event.signals)]
    table = score_table(event, case.router)
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
    """Say every signal that is not nothing; the names are the event's."""
    told = [
        name if value is True else f"{name} {_number(value)}"
        for name, value in msgspec.structs.asdict(signals).items()
        if value not in (False, None, (), 0)
    ]
    return Text(f"signals: {', '.join(told) or 'none'}", "dim")


def _scores(table: Sequence[ModeScore]) -> Table:
    grid = Table(box=None, pad_edge=False, header_style="dim")
    grid.add_column("mode")
    grid.add_column("score", justify="right")
    grid.add_column("terms", overflow="fold")
    for place, score in enumerate(table):
        terms = "  ".join(f"{value:+.3f} {name}" for name, value in score.terms.items() if value)
        grid.add_row(score.mode, f"{score.recorded:.3f}", terms, style="bold" if place == 0 else "")
    return grid


def _emitted(event: ResponseEmitted, case: Case) -> Sequence[RenderableType]:
    colour = "green" if event.action in LET_PASS else "red"
    verdict = Text().append(event.action, f"bold {colour}").append(f" at {event.stage}, because {event.reason}")
    if event.mode is not None:
        verdict.append(f", mode {event.mode} (first {event.first_mode})")
    verdict.append(f", written by {event.backend}{f' ({event.model})' if event.model else ''}")
    verdict.append(f", of loop {event.loop_id}" if event.loop_id else "")
    answer = Text(quoted(event.response), "italic") if event.response else Text("(no words)", "dim")
    return [verdict, answer, *_lacking(event), *_identity(event), *entities(event.entities)]


def _lacking(event: ResponseEmitted) -> Sequence[RenderableType]:
    ended = ENDINGS.get(event.finish_reason, "")
    told = ([f"not whole: {ended}"] if ended else []) + ([told_cuts(event.cuts)] if event.cuts else [])
    return [Text(each, "yellow") for each in told]


def _identity(event: ResponseEmitted) -> Sequence[RenderableType]:
    used = event.identity
    if used is None:
        return []
    line = f"took up {len(used.current)} of {len(used.stable)} parts of the soul, overlap {used.overlap:g}"
    return [Text(f"{line}{': ' if used.current else ''}{', '.join(used.current)}", "dim")]


def _fired(event: ClockFired, case: Case) -> Sequence[RenderableType]:
    return [Text(f"the deadline that {event.set_by} had set passed", "red")]


def _fields(event: Event) -> Sequence[RenderableType]:
    return [Text(f"{name}: {_number(value)}") for name, value in msgspec.to_builtins(event).items() if name != "topic"]


def _number(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


_DETAILS: Mapping[type[Event], Callable[[Any, Case], Sequence[RenderableType]]] = {
    InputReceived: _received,
    InputAnswered: _told,
    ReflexBlocked: _blocked,
    ReflexPassed: _passed,
    ModeSelected: _selected,
    ResponseEmitted: _emitted,
    ClockFired: _fired,
    CoherencePassed: _weighed,
    CoherenceRejected: _weighed,
}
"""Event type -> how its numbers are told with the case before one; any other event without it, or by its fields."""
