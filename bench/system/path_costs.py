"""What one exchange costs each process: counts of what it did, and the microseconds of each.

Times are processor time, except that of a flush, which is the time from the call to the broker's acknowledgement: a
process waits for it, and works on other things meanwhile.
"""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

ANSWER = "forged_id.response.emitted"
"""The subject of the event that an answer waits for."""


class Cost(msgspec.Struct, frozen=True):
    """How often something is done for an exchange, and the microseconds of one of them; None if it has no time."""

    count: float
    us: float | None = None


UNITS: Mapping[str, tuple[str, ...]] = {
    "messages read": ("socket in", "reading"),
    "decodes": ("decoding",),
    "dispatches": ("routing", "partition"),
    "decisions": ("deciding ",),
    "evolves": ("fold ",),
    "events": ("encoding",),
    "appends": ("committing",),
    "flushes": (),
}
"""What is counted -> the beginnings of the names of the parts (``path_probe``) whose time it takes."""


def costs_of(records: Mapping[str, Any], exchanges: int) -> dict[str, Cost]:
    """Return what a process did for an exchange, from its records; without what it never did."""
    found: dict[str, Cost] = {}
    for unit, parts in UNITS.items():
        count = records["counts"].get(unit, 0)
        if not count:
            continue
        if unit == "flushes":
            us = statistics.median(records["waited_ns"]) / 1e3
        else:
            us = sum(ns for part, ns in records["ns"].items() if part.startswith(parts)) / 1e3 / count
        found[unit] = Cost(round(count / exchanges, 2), round(us, 1))
    return found


def together(costs: Iterable[Mapping[str, Cost]]) -> dict[str, Cost]:
    """Return the costs of several processes together; each time is the mean over all of them."""
    processes = list(costs)
    found: dict[str, Cost] = {}
    for unit in dict.fromkeys(unit for each in processes for unit in each):
        parts = [each[unit] for each in processes if unit in each]
        count = sum(part.count for part in parts)
        timed = [part.count * part.us for part in parts if part.us is not None]
        found[unit] = Cost(round(count, 2), round(sum(timed) / count, 1) if timed and count else None)
    return found


def flushes_in_a_row(stored: Sequence[tuple[str, str, str, object]]) -> float:
    """Return the median number of flushes, one after another, from an input to its answer.

    Each stored event is given with its id, its cause's id, its subject and what it was flushed with. Events of one
    flush count once.
    """
    by_id = {event: (cause, flush) for event, cause, _, flush in stored}
    lengths = []
    for event, _, topic, _ in stored:
        if topic != ANSWER:
            continue
        length, at, last = 0, event, object()
        while at in by_id:
            cause, flush = by_id[at]
            length, at, last = length + (flush != last), cause, flush
        lengths.append(length)
    return statistics.median(lengths) if lengths else 0.0
