"""What-if: deciding a recorded log again under changed settings, patterns or precedents. No effect is ever run."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

import msgspec

from actors.contract.text.judge.weights import added_weights
from actors.gateway.operator_orders import Order, records_of
from actors.registry import ACTORS
from deploy.config.loading import BadConfiguration, Layer, all_sections, flag_layer, overrides
from deploy.replaying.run_effect_check import REQUESTS_TO
from events.decoding import Recorded, decode
from events.errors import Misconfigured
from events.log import Record, Stored
from events.replay.run_replay import END, Point
from events.replay.sources import Source
from events.replay.whatif import MOST_EXAMPLES, Changes, RecordIndexer, Report, Timeline
from schemas.event import topic_of
from schemas.subjects import EVERYTHING, Partitions
from schemas.vocabulary.patterns import PatternSet, PatternsImported, PatternsWithdrawn
from schemas.vocabulary.precedents import PrecedentRecorded, PrecedentWithdrawn

REQUESTS = REQUESTS_TO["llm"] | REQUESTS_TO["delegate"]
"""The types of events that request an effect in every set."""

DELIVERIES = REQUESTS_TO["webhook"]
"""The types of events that request an effect only in sets where receivers of alerts are configured."""

MOST_POINTS = 200
"""The most values of a sweep."""


class BadSweep(ValueError):
    """A text is not a valid sweep; the message says how to write one."""

    code = "bad_point"


class Sweep(msgspec.Struct, frozen=True):
    """A setting, and the values that it takes one after another."""

    key: str
    values: tuple[str, ...]


def settings_of(file: Layer | None, flags: Sequence[Layer] = ()) -> dict[str, dict[str, Any]]:
    """Return changed settings by actor: those of a configuration file, overridden by flags.

    The file may be that of a whole set: sections of it that are not an actor's change no decision, and are skipped.

    Raises:
        BadConfiguration: a section or key is unknown, a key does not take its value, or a flag is not about an actor.
    """
    changed = overrides(all_sections(), [file, *flags] if file is not None else flags)
    for flag in flags:
        if others := sorted(name.lower() for name in flag.values if name.lower() not in ACTORS):
            raise BadConfiguration(f"{flag.origin}: {others[0]} decides nothing: only an actor's settings can be tried")
    return {name: values for name, values in changed.items() if name in ACTORS and values}


def sweep_of(text: str) -> Sweep:
    """Read ``KEY=FROM:TO:STEP``, both ends included, such as ``router.base_scores.RESPOND=0.30:0.60:0.05``.

    Raises:
        BadSweep: it is not of that form, or has more than :data:`MOST_POINTS` values.
    """
    key, _, span = text.partition("=")
    try:
        first, last, step = (Decimal(part) for part in span.split(":"))
        count = int((last - first) / step) + 1 if step else 0
    except (InvalidOperation, ValueError, OverflowError):
        raise BadSweep(
            f"--sweep {text!r}: write KEY=FROM:TO:STEP, such as router.base_scores.RESPOND=0.3:0.6:0.05"
        ) from None
    if not key or not 1 <= count <= MOST_POINTS:
        raise BadSweep(f"--sweep {text!r}: from FROM to TO by STEP there must be 1 to {MOST_POINTS} values")
    return Sweep(key, tuple(str(first + index * step) for index in range(count)))


def layer_at(sweep: Sweep, value: str) -> Layer:
    """Return the layer that sets a sweep's key to one of its values."""
    if "." not in sweep.key:
        raise BadConfiguration(f"--sweep {sweep.key!r}: write SECTION.KEY=FROM:TO:STEP")
    return flag_layer(f"--sweep {sweep.key}", sweep.key, value)


def changes_of(
    settings: Mapping[str, Mapping[str, Any]],
    partitions: Partitions,
    *,
    patterns: Sequence[PatternSet] = (),
    precedents: Sequence[PrecedentRecorded] = (),
    agent: str = "",
    latest: bool = False,
) -> Changes:
    """Return the changes: settings, and, if given, patterns and precedents of an agent that replace the recorded ones.

    With ``latest``, all is decided under the behaviours of this release instead of the recorded ones.
    """
    dropped: set[str] = set()
    orders: list[Order] = []
    if patterns:
        dropped |= {topic_of(PatternsImported), topic_of(PatternsWithdrawn)}
        orders.append(Order(event=PatternsImported(name="what-if", sets=tuple(patterns))))
    if precedents:
        dropped |= {topic_of(PrecedentRecorded), topic_of(PrecedentWithdrawn)}
        orders += [Order(event=event, agent=agent) for event in precedents]
    added = [_recorded(record) for record in records_of(orders, partitions, 0)] if orders else []
    return Changes(settings=settings, dropped=frozenset(dropped), added=added, latest=latest)


def _recorded(record: Record) -> Recorded:
    recorded = decode(Stored(0, 0, record.subject, record.headers, record.data))
    assert isinstance(recorded, Recorded)
    return recorded


async def run(
    source: Source,
    changes: Sequence[Changes],
    *,
    upto: Point = END,
    examples: int = MOST_EXAMPLES,
    exchanges: frozenset[str] = frozenset(),
    progress: Callable[[int], None] = lambda _: None,
) -> list[Report]:
    """Decide a log again, once for each of ``changes``; the log is read twice, however many there are.

    ``examples`` is the most examples that a report keeps. ``exchanges`` are those that it traces, see ``Timeline``.
    ``progress`` is called with the sequence that has been reached.

    Raises:
        Misconfigured: the log does not begin at its first event.
        UnfitChanges: the changed settings do not fit the log.
        LogError: the source cannot be read.
    """
    info = await source.info()
    if info.first_seq > 1:
        raise Misconfigured(
            f"the {source.name} begins at sequence {info.first_seq}, not 1: nothing can be decided anew from its middle"
        )
    actors = tuple(ACTORS.values())
    reader = RecordIndexer(actors, source.partitions, added_weights)
    async for batch in _read(source, min(upto.seq, info.last_seq), upto):
        for stored in batch:
            reader.feed(stored)
        progress(batch[-1].seq // 10)  # the first reading counts as a tenth of the work
    past = reader.finish()
    requests = REQUESTS | DELIVERIES if "webhook" in past.effectors else REQUESTS
    timelines = [Timeline(actors, source.partitions, past, each, requests, examples, exchanges) for each in changes]
    async for batch in _read(source, past.last_seq, upto):
        for timeline in timelines:
            for stored in batch:
                timeline.feed(stored)
        progress(batch[-1].seq)
    return [timeline.finish() for timeline in timelines]


async def _read(source: Source, last: int, upto: Point) -> AsyncIterator[Sequence[Stored]]:
    async for batch in source.history([EVERYTHING], 0, last):
        kept = [stored for stored in batch if stored.time_ns <= upto.time_ns]
        if kept:
            yield kept
        if len(kept) < len(batch):
            return
