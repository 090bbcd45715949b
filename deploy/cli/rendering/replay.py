"""The report of a replay as tables and lines for people. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from deploy.cli.rendering.layout.counts_table import CountsTable
from deploy.cli.rendering.layout.quoting import shortened, value_text
from deploy.replaying.what_if_verdicts import reason_text
from events.replay.replay import Coverage, Difference, Report
from events.replay.verifying.effect_check import EffectFinding, EffectReport
from events.replay.verifying.pending import Pending

_MAX_VALUE_CHARACTERS = 2_000
_HASH_CHARACTERS = 16
_MISSING = object()
"""In place of the value of a field that only one of two bodies has."""


def render_states(report: Report) -> Table:
    """Return a table of the state hash of every partition, shortened; partitions of equal state share a row."""
    grid = Table(box=None, pad_edge=False, header_style="bold")
    grid.add_column("actor", no_wrap=True)
    grid.add_column("state hash", no_wrap=True)
    grid.add_column("partitions", overflow="fold")
    equal: dict[tuple[str, str], list[str]] = {}
    for name, digest in report.state_hashes.items():
        actor, _, partition = name.partition("/")
        equal.setdefault((actor, digest), []).append(partition)
    for (actor, digest), partitions in equal.items():
        grid.add_row(actor, digest[:_HASH_CHARACTERS], " ".join(partitions))
    return grid


def render_coverage(coverage: Mapping[str, Coverage]) -> Iterator[RenderableType]:
    """Yield a table of each actor's decisions by result, why some could not be made again, and fields that are new.

    ``identical`` and ``different`` ones were made again; ``silent`` are identical ones that lead to no event.
    ``pending`` ones had not been made when the log ended, and ``unverified`` ones could not be made again. ``timers``
    are events of timers, and ``facts`` those that no decision yields, such as settings: both are checked otherwise.
    """
    names = ("identical", "silent", "different", "pending", "timers", "facts", "unverified")
    grid = CountsTable("actor", names)
    for actor, counts in coverage.items():
        numbers = (
            counts.identical,
            counts.silent,
            counts.different,
            counts.pending,
            counts.timers,
            counts.facts,
            sum(counts.unverified.values()),
        )
        grid.add(actor, numbers, "red" if counts.different else "")
    yield grid
    for actor, counts in coverage.items():
        for reason, count in sorted(counts.unverified.items()):
            first = f" (the first at sequence {counts.first_unverified[reason]:,})"
            yield Text(f"{actor}: {count:,} unverified, {reason_text(reason)}{first}", "yellow")
    for actor, counts in coverage.items():
        for field, count in counts.new_fields.items():
            yield Text(new_field_text(actor, field, count))


def new_field_text(actor: str, field: str, count: int) -> str:
    """Return the note that recorded bodies lack a field that today's have."""
    bodies = "1 event" if count == 1 else f"{count:,} events"
    return f"{actor}: new in {bodies}, and not compared: {field}"


def without_actor_text(events: Mapping[str, int]) -> str:
    """Return how many events, by public subject, are of actors that this release does not have."""
    subjects = ", ".join(f"{topic} {count:,}" for topic, count in events.items())
    found = "1 event is" if (count := sum(events.values())) == 1 else f"{count:,} events are"
    return f"{found} of no actor of this release, so that what led to them was not decided again: {subjects}"


def render_difference(difference: Difference) -> Iterator[RenderableType]:
    """Yield what is known of a decision that differs: where it is, its input message, and the difference."""
    head = Text("first difference: ", "bold red")
    head.append(f"{difference.actor}/{difference.partition} on sequence {difference.seq} ({difference.topic})")
    yield head
    yield Text(f"exchange {difference.exchange or '-'}, the {difference.field} differs")
    changes = changed_fields(difference.recorded, difference.redecided) if difference.field == "body" else ()
    if not changes:
        yield Text(f"  recorded    {shortened(difference.recorded, _MAX_VALUE_CHARACTERS)}")
        yield Text(f"  re-decided  {shortened(difference.redecided, _MAX_VALUE_CHARACTERS)}")
    for path, was, now in changes:
        yield Text(f"  {path}: recorded {was}, re-decided {now}")
    hints = [
        f"`neuraxis state {difference.actor} {difference.partition} --at {difference.seq - 1}` shows the state before"
    ]
    if difference.exchange:
        hints.insert(0, f"`neuraxis why {difference.exchange}` shows the exchange")
    yield Text("; ".join(hints), "dim")


def render_effects(report: EffectReport) -> Iterator[RenderableType]:
    """Yield a table of the recorded effects of each effector, and the first wrong one."""
    if not report.counts:
        return
    grid = CountsTable("effects, not performed again", ("requests", "answered", "open", "wrong"))
    for effector, counts in report.counts.items():
        numbers = (counts.requests, counts.answered, counts.open, counts.wrong)
        grid.add(effector, numbers, "red" if counts.wrong else "")
    yield grid
    for effector, counts in report.counts.items():
        if counts.unread:
            events = "event answers a request" if counts.unread == 1 else "events answer requests"
            yield Text(f"{effector}: {counts.unread:,} {events} that this release does not know", "yellow")
    for finding in report.findings[:1]:
        yield Text(f"first wrong effect: {effect_text(finding)}", "bold red")


def effect_text(finding: EffectFinding) -> str:
    """Return which recorded effect its effector could not have recorded so, and why."""
    problem = _PROBLEMS[finding.problem].format(finding.field)
    return (
        f"{finding.topic} of {finding.effector} (sequence {finding.seq}, exchange {finding.exchange or '-'}, "
        f"cause {finding.cause or '-'}): {problem}"
    )


_PROBLEMS = {
    "no_request": "no request of that id stands before it",
    "other_request": "its cause is no request that this effector serves",
    "answered_twice": "its request is answered already",
    "place": "it names another sequence of its request, or events of its answer are missing before it",
    "id": "its id is not the one that an answer to its request has",
    "body": "its {} is not that of its request",
    "exchange": "its request belongs to another exchange",
    "unreadable": "its headers cannot be read",
}


def pending_text(pending: Pending, end_ns: int) -> str:
    """Return which decision an actor has not made, and how long before the log's end it was due (nanoseconds)."""
    exchange = f", exchange {pending.exchange}" if pending.exchange else ""
    waited = max(0, end_ns - pending.time_ns) / 1e9  # a live log may have grown since its end was looked up
    id = pending.id or "-"
    if_silent = "" if pending.has_recorded else "; it recorded nothing in this log"
    if pending.is_timer:
        missing = f"has not recorded {pending.topic} (set by {id}{exchange}), which was due"
    else:
        missing = f"has not decided {pending.topic} (sequence {pending.seq}, id {id}{exchange}),"
    return f"{pending.actor}/{pending.partition} {missing} {waited:,.1f} s before the log's end{if_silent}"


def changed_fields(recorded: str, redecided: str) -> tuple[tuple[str, str, str], ...]:
    """Return the fields of two JSON bodies that differ, as (path, recorded, re-decided); none when one is no JSON."""
    try:
        was, now = msgspec.json.decode(recorded), msgspec.json.decode(redecided)
    except msgspec.DecodeError:
        return ()
    return tuple(
        (path or "(all)", _value_text(left), _value_text(right)) for path, left, right in _changes("", was, now)
    )


def _changes(path: str, was: Any, now: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(was, dict) and isinstance(now, dict):
        for name in dict.fromkeys((*was, *now)):
            inner = f"{path}.{name}" if path else str(name)
            yield from _changes(inner, was.get(name, _MISSING), now.get(name, _MISSING))
    elif isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        for index, (left, right) in enumerate(zip(was, now, strict=True)):
            yield from _changes(f"{path}[{index}]", left, right)
    elif was is _MISSING or now is _MISSING or was != now:
        yield path, was, now


def _value_text(value: Any) -> str:
    return "nothing" if value is _MISSING else value_text(value, _MAX_VALUE_CHARACTERS)
