"""The report of a what-if run (decisions under other settings) as tables and lines for people. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from deploy.cli.rendering.hidden_texts import without_words
from deploy.cli.rendering.layout.counted_nouns import counted
from deploy.cli.rendering.layout.counts_table import CountsTable
from deploy.cli.rendering.layout.quoting import quoted_line, value_text
from deploy.cli.rendering.replay import new_field_text
from deploy.replaying.what_if_verdicts import (
    headline,
    measured_setting_warnings,
    reason_text,
    redecided,
    why_nothing_compared,
)
from events.replay.whatif import LATEST, RECORDED, Change, Example, Outcome, Report, Traced, fields_of
from events.replay.whatif.report import EFFECT_MISSING, NOT_REDECIDED, OPEN
from schemas.catalogue import CATALOGUE

_MAX_FIELDS = 8
_MAX_VALUE_CHARACTERS = 120
_MAX_QUESTION_CHARACTERS = 72


def render_report(report: Report, examples: int) -> Iterator[RenderableType]:
    """Yield how many exchanges end differently and how, each actor's decisions by result, and examples."""
    yield Text(headline(report), "bold yellow" if report.changed or why_nothing_compared(report) else "bold green")
    yield Text(redecided(report), "yellow" if report.held_by_reason else "")
    yield Text(_BEHAVIOUR_TEXTS[report.behaviour])
    for text in measured_setting_warnings(report):
        yield Text(text, "yellow")
    for name in report.unanswered:
        yield Text(
            f"{name}: none of its decisions could be made anew, so that its other settings show nothing", "yellow"
        )
    if report.open:
        yield Text(f"{report.open:,} without an end on record: nothing to compare")
    if report.reworded:
        yield Text(f"{report.reworded:,} more have the same decision in other words")
    for why, count in report.without_end.items():
        yield Text(f"{count:,} have no end: {_NO_END_TEXTS.get(why, why)}", "yellow")
    for title, confusion in (("stage and action", report.ends), ("mode", report.modes)):
        if any(was != now for was, row in confusion.items() for now in row):
            yield Text(f"\n{title}, recorded → what-if", "bold")
            yield from _confusion(confusion)
    yield Text("\nevents by actor", "bold")
    yield _tallies(report)
    for actor, tally in report.tallies.items():
        if len(tally.behaviours) > 1:
            lines = (f"{count:,} under behaviour {number}" for number, count in sorted(tally.behaviours.items()))
            yield Text(f"{actor}: decided {', '.join(lines)}")
    for actor, tally in report.tallies.items():
        for reason, count in sorted(tally.held.items()):
            yield Text(f"{actor}: {counted(count, 'decision')} taken from the record, {reason_text(reason)}", "yellow")
        for field, count in sorted(tally.new_fields.items()):
            yield Text(new_field_text(actor, field, count))
    if report.effects:
        yield Text(
            "\neffects: "
            + ", ".join(f"{count:,} {_EFFECT_TEXTS.get(name, name)}" for name, count in report.effects.items())
        )
    if report.without_actor:
        count = sum(report.without_actor.values())
        yield Text(
            f"{counted(count, 'event')} of no actor of this release, taken from the record: "
            + ", ".join(f"{topic} {number:,}" for topic, number in report.without_actor.items()),
            "yellow",
        )
    for code, count in report.unreadable.items():
        yield Text(f"{counted(count, 'event')} cannot be read by this release: {code}", "yellow")
    for example in report.examples[:examples]:
        yield Text("")
        yield from _example(example)


# A behaviour is the version of an actor's rules: a release may have several, so that old decisions can be made again.
_BEHAVIOUR_TEXTS = {
    RECORDED: "each decided under the behaviour recorded as in force",
    LATEST: "all decided under today's behaviours",
}
_NO_END_TEXTS = {
    EFFECT_MISSING: "a decision asked for an effect that was never made",
    NOT_REDECIDED: "a decision on the way cannot be made anew",
    OPEN: "the log stops before it",
}
_EFFECT_TEXTS = {
    "reused": "reused from the record",
    "never_asked": "never asked for on record",
    "asked_otherwise": "asked for otherwise on record",
}


def without_texts(report: Report) -> Report:
    """Return a report without people's words: texts are left out, and hidden in the events that differ."""
    examples = [_outcome_without_texts(each.outcome) for each in report.examples]
    traced = {
        exchange: Traced(_outcome_without_texts(each.outcome), tuple(map(_change_without_texts, each.changes)))
        for exchange, each in report.traced.items()
    }
    shown = tuple(Example(outcome, fields_of(outcome.first)) for outcome in examples)
    return msgspec.structs.replace(report, examples=shown, traced=traced)


def _outcome_without_texts(outcome: Outcome) -> Outcome:
    first = outcome.first and _change_without_texts(outcome.first)
    was, now = (msgspec.structs.replace(end, response="") for end in (outcome.recorded, outcome.whatif))
    return msgspec.structs.replace(outcome, text="", recorded=was, whatif=now, first=first)


def _change_without_texts(change: Change) -> Change:
    recorded, whatif = (_hidden(change.topic, body) for body in (change.recorded, change.whatif))
    return msgspec.structs.replace(change, recorded=recorded, whatif=whatif)


def _hidden(topic: str, body: dict[str, Any] | None) -> dict[str, Any] | None:
    return body and without_words(msgspec.convert(body, CATALOGUE[topic].event))


def render_sweep(key: str, reports: Sequence[tuple[str, Report]]) -> Table:
    """Return a table of a sweep: by value, the share of exchanges that end differently, and the shares of modes.

    ``not told`` counts exchanges that could not be compared; the column is left out where there are none.
    """
    modes = sorted({now for _, report in reports for row in report.modes.values() for now in row})
    grid = Table(box=None, pad_edge=False, header_style="bold", title=key, title_style="bold", title_justify="left")
    not_told = ("not told",) if any(report.held for _, report in reports) else ()
    for name in ("value", "changed", "share", "without end", *not_told, *modes):
        grid.add_column(name, justify="right")
    for value, report in reports:
        shares = mode_shares(report)
        without = sum(report.without_end.values())
        numbers = (f"{report.changed:,}", f"{report.share:.1%}", f"{without:,}")
        held = (f"{report.held:,}",) if not_told else ()
        grid.add_row(value, *numbers, *held, *(f"{shares.get(mode, 0.0):.1%}" for mode in modes))
    return grid


def mode_shares(report: Report) -> dict[str, float]:
    """Return the share of each mode among the exchanges that have one under the other settings, in [0, 1]."""
    counts: dict[str, int] = {}
    for row in report.modes.values():
        for mode, count in row.items():
            counts[mode] = counts.get(mode, 0) + count
    total = sum(counts.values())
    return {mode: count / total for mode, count in counts.items()} if total else {}


def _confusion(confusion: Mapping[str, Mapping[str, int]]) -> Iterator[Text]:
    """Yield a line for each pair (recorded, what-if), changed ones first: a matrix would be too wide."""
    counts = {(was, now): count for was, row in confusion.items() for now, count in row.items()}
    width = max(len(f"{count:,}") for count in counts.values())
    for (was, now), count in sorted(counts.items(), key=lambda item: (item[0][0] == item[0][1], -item[1], item[0])):
        same = was == now
        yield Text(f"  {count:>{width},}  {was}{' as before' if same else f' → {now}'}", "dim" if same else "yellow")


def _tallies(report: Report) -> CountsTable:
    """Return a table of each actor's messages that were decided again, and of its events.

    ``identical`` and ``different`` events come in the record and under the other settings, ``gone`` ones only in the
    record, ``new`` ones only under the other settings. The record ends before the ``pending`` ones.
    """
    grid = CountsTable("actor", ("decided", "identical", "different", "gone", "new", "pending"))
    for actor, tally in report.tallies.items():
        numbers = (tally.decided, tally.identical, tally.different, tally.gone, tally.new, tally.pending)
        changed = tally.different or tally.gone or tally.new
        grid.add(actor, numbers, "yellow" if changed else "")
    return grid


def _example(example: Example) -> Iterator[Text]:
    outcome = example.outcome
    was, now = outcome.recorded, outcome.whatif
    if outcome.text:
        yield Text(quoted_line(outcome.text, _MAX_QUESTION_CHARACTERS), "bold italic")
    head = Text(f"exchange {outcome.exchange}", "" if outcome.text else "bold")
    head.append(f" (sequence {outcome.seq}): {was.label} {was.reason} → {now.label} {now.reason}", "not bold")
    yield head
    first = outcome.first
    if first is None:
        return
    what = "is gone" if first.whatif is None else "is new" if first.recorded is None else "differs"
    yield Text(f"  first, at sequence {first.seq}: {first.topic} of {first.actor} {what}")
    for path, sides in list(example.fields.items())[:_MAX_FIELDS]:
        was_there, is_there = (value_text(each, _MAX_VALUE_CHARACTERS) for each in sides)
        yield Text(f"    {path}: {was_there} → {is_there}")
    if len(example.fields) > _MAX_FIELDS:
        yield Text(f"    and {len(example.fields) - _MAX_FIELDS} more fields", "dim")
