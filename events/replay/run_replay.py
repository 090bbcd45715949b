"""Running a replay over a source, from its first event up to a sequence or a time. No effect is ever run."""

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import msgspec

from events.errors import Misconfigured
from events.log import LogInfo
from events.losses import LOSS_FILTER, Losses
from events.replay.replay import ActorPartition, Replay, Report
from events.replay.sources import Source
from events.replay.verifying.unread_causes import readers_of
from events.routes import own_filters, partition_own_filters, without_overlap
from schemas.identity import content_hash
from schemas.intake.whole_numbers import read_whole_number


class BadPoint(ValueError):
    """A point of the log that is neither a sequence nor a time; the message says how to write one."""

    code = "bad_point"


class TimeOutOfRange(BadPoint):
    """The point is a time outside the years 1 to 9999 in UTC."""


class Point(msgspec.Struct, frozen=True):
    """How far to read: up to and with ``seq``, and no event stored after ``time_ns`` (Unix nanoseconds)."""

    seq: int = 2**63 - 1
    time_ns: int = 2**63 - 1


_GC_THRESHOLD = 200_000
"""Net allocations after which Python's garbage collector runs on the youngest generation; its default is 700."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

END = Point()
"""The end of the log."""


def point_of(text: str) -> Point:
    """Read a sequence (``1200``) or an ISO 8601 time (``2026-01-31T12:00:00Z``; without a zone, UTC).

    Raises:
        BadPoint: it is neither.
        TimeOutOfRange: it is a time outside the years 1 to 9999 in UTC.
    """
    if (seq := read_whole_number(text)) is not None:
        return Point(seq=seq)
    try:
        moment = datetime.fromisoformat(text)
        moment = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except OverflowError:
        raise TimeOutOfRange(
            f"{text!r} is outside the years 1 to 9999 in UTC: write a sequence, or a time such as 2026-01-31T12:00:00Z"
        ) from None
    except ValueError:
        raise BadPoint(
            f"{text!r} is no point of a log: write a sequence, or a time such as 2026-01-31T12:00:00Z"
        ) from None
    return Point(time_ns=(moment - _EPOCH) // timedelta(microseconds=1) * 1_000)


async def run_replay(
    source: Source, replay: Replay, upto: Point = END, *, filters: Sequence[str] = (), progress: Callable[[int], None]
) -> Report:
    """Feed a replay everything up to a point, and report.

    Args:
        source: Where events come from.
        replay: What folds them.
        upto: How far to go.
        filters: What to read; default: all that the replayed actors consumed and published.
        progress: Called with the sequence reached, now and then.

    Raises:
        Misconfigured: the log does not begin at its first event, so that no state can be folded from it.
        LogError: the source cannot be read.
    """
    last = await last_seq_of_complete_log(source)
    with fewer_gc_runs():
        reached = await read_into(source, replay, upto, filters=filters, progress=progress)
        if reached < last:
            await _look_ahead(source, replay, replay.undecided, reached, last)
        # Messages that this release cannot read, and that led to nothing: a release that could read them may have run.
        if doubtful := replay.verification.doubtful:
            replay.verification.readers = await readers_of(source, doubtful)
        return replay.finish()


async def fold_upto(
    source: Source,
    replay: Replay,
    upto: Point,
    *,
    after: int = 0,
    filters: Sequence[str] = (),
    progress: Callable[[int], None],
) -> None:
    """Fold as :func:`run_replay` does, but from behind a sequence on, and without a report: ``source.unread`` has what
    could not be read.

    Messages may be waiting when ``progress`` is called.
    """
    last = await last_seq_of_complete_log(source)
    with fewer_gc_runs():
        reached = await read_into(source, replay, upto, after=after, filters=filters, progress=progress)
        if reached < last:
            await _look_ahead(source, replay, replay.undecided, reached, last)
        replay.fold_waiting()
    source.unread.add(replay.unread)


async def read_into(
    source: Source,
    replay: Replay,
    upto: Point = END,
    *,
    after: int = 0,
    filters: Sequence[str] = (),
    progress: Callable[[int], None],
) -> int:
    """Feed a replay everything after a sequence up to a point, as :func:`run_replay` does; return the last sequence.

    Messages that wait for a decision then are still waiting.
    """
    last = await last_seq_of_complete_log(source)
    replay.looks_ahead = True
    async for batch in source.history(filters or replay.filters, after, min(upto.seq, last)):
        for stored in batch:
            if stored.time_ns > upto.time_ns:
                replay.reach(stored.seq - 1)
                return stored.seq - 1
            replay.feed(stored)
        if partitions := replay.waiting_for_next_event:
            await _look_ahead(source, replay, partitions, batch[-1].seq, last)
        progress(batch[-1].seq)
    replay.reach(reached := min(upto.seq, last))
    return reached


async def _look_ahead(
    source: Source, replay: Replay, partitions: Sequence[ActorPartition], after: int, last: int
) -> None:
    """Look up partitions' next events behind a sequence: they show which earlier messages led to no event."""
    views = [replay.views[partition] for partition in partitions]
    if len(views) == 1 and not replay.partitions.former:
        filters = partition_own_filters(views[0].actor, views[0].partition, replay.partitions)
        if (found := await source.first(filters, after, last)) is not None:
            replay.note_next_event(found)
    elif views:
        filters = without_overlap(each for view in views for each in own_filters(view.actor))
        async for batch in source.as_stored(filters, after, last):
            for stored in batch:
                replay.note_next_event(stored)
            if replay.knows_next_events(partitions):
                break
    replay.note_no_next_event(partitions)


async def last_seq_of_complete_log(source: Source) -> int:
    """Return a log's last sequence.

    Raises:
        Misconfigured: it does not begin at its first event, and has not recorded the first ones as lost.
        LogError: the source cannot be read.
    """
    info = await source.info()
    if info.first_seq > 1 and not await _is_beginning_lost(source, info):
        raise Misconfigured(
            f"the {source.name} begins at sequence {info.first_seq}, not 1: states cannot be folded from its middle; "
            "take a copy of the log that is whole"
        )
    return info.last_seq


async def _is_beginning_lost(source: Source, info: LogInfo) -> bool:
    """Whether a log has recorded everything before its first event as lost: then its decisions were made without it."""
    losses = Losses()
    async for batch in source.history((LOSS_FILTER,), 0, info.last_seq):
        for stored in batch:
            losses.note(stored)
    return losses.has_gap(1, info.first_seq - 1)


@contextmanager
def fewer_gc_runs() -> Iterator[None]:
    """Make Python's garbage collector run rarely.

    States and events are frozen and have no cycles: reference counts free them. With the default the collector walks
    through all waiting messages again and again, which takes an eighth of a fold's time.
    """
    before = gc.get_threshold()
    gc.set_threshold(_GC_THRESHOLD, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def overall_hash(report: Report) -> str:
    """Return one hash (64 hex digits) over the final states of all partitions: equal states, equal hashes."""
    return content_hash(report.state_hashes)
