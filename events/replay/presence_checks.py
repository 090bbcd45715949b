"""Checks that a log holds what a command is to read. A command that finds nothing fails: it has checked nothing.

Its exit status is then 1, as for any failed check. That also holds if a session, agent, exchange, loop or point is
named that the log does not hold, since the log may hold it tomorrow. Status 2 is for what is wrong with any log: a
flag, an actor, a subject, a missing file, an ambiguous beginning of an exchange's id.
"""

from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec

from events.replay.key_use import use_of_key
from events.replay.run_replay import END, Point
from events.replay.sources import LedgerSource, Source
from schemas.actor import Scope
from schemas.intake.timestamps import to_milliseconds
from schemas.subjects import EVERYTHING


class NothingFound(Exception):
    """There was nothing to look at; the message says where, where the log ends, and what to do."""

    code = "nothing_there"


class BeyondEnd(NothingFound):
    """The named point is behind the log's end, where nothing is known yet."""


class OtherKind(NothingFound):
    """A name is that of a session where an agent's is needed, or the like: nothing of it would be looked at."""


class Span(msgspec.Struct, frozen=True):
    """The extent of a log: first and last sequence, and the server's times of both (Unix nanoseconds)."""

    first_seq: int
    last_seq: int
    first_ns: int
    last_ns: int

    @property
    def end(self) -> str:
        """The log's end, for people."""
        return f"sequence {self.last_seq:,} ({to_milliseconds(self.last_ns)})"


async def span_of(source: Source) -> Span:
    """Return a log's extent; raises NothingFound if it holds no event."""
    info = await source.info()
    if not info.messages:
        raise NothingFound(f"the {source.name} holds no events, so that nothing was looked at: {_remedy(source)}")
    return Span(
        info.first_seq, info.last_seq, await _time_of(source, info.first_seq), await _time_of(source, info.last_seq)
    )


async def check_reaches(source: Source, upto: Point = END) -> str:
    """Check a point up to which a log is read; return a note if the log ends before it, else an empty text.

    Raises:
        NothingFound: the log holds no event up to there.
    """
    span = await span_of(source)
    if upto.seq < span.first_seq or upto.time_ns < span.first_ns:
        raise NothingFound(
            f"the {source.name} holds no event up to {_point_text(upto)}, so that nothing was looked at: it begins at "
            f"sequence {span.first_seq:,} ({to_milliseconds(span.first_ns)}) and ends at {span.end}"
        )
    if END.seq > upto.seq > span.last_seq or END.time_ns > upto.time_ns > span.last_ns:
        return f"the {source.name} ends at {span.end}, before {_point_text(upto)}: this is how it stands at its end"
    return ""


async def check_holds(source: Source, point: Point) -> str:
    """As :func:`check_reaches`, for a point that must lie in the log, since what comes after its end is not known.

    A time after the end is accepted if it has passed: nothing happened then.

    Raises:
        BeyondEnd: the log ends before the point.
        NothingFound: it begins behind it.
    """
    warning = await check_reaches(source, point)
    if warning and (point.seq != END.seq or point.time_ns > datetime.now(UTC).timestamp() * 1e9):
        span = await span_of(source)
        raise BeyondEnd(
            f"{_point_text(point)} is not in the {source.name}, which ends at {span.end}: name a point up to there"
        )
    return warning


async def check_holds_both(source: Source, first: Point, second: Point) -> str:
    """As :func:`check_holds`, for two points that are to be compared; between them must lie an event."""
    warning = await check_holds(source, second)
    span = await span_of(source)
    if first.seq != END.seq and first.seq > span.last_seq:
        await check_holds(source, first)
    if first == second or (warning and first.seq == END.seq and first.time_ns > span.last_ns):
        raise NothingFound(
            f"the {source.name} ends at {span.end}: no event lies between the two points, so that nothing was compared"
        )
    return warning


async def check_holds_since(source: Source, since: int) -> None:
    """Raise NothingFound unless the log holds an event of a sequence, or of a later one."""
    span = await span_of(source)
    if since > span.last_seq:
        raise NothingFound(
            f"the {source.name} ends at {span.end}, before sequence {since:,}: nothing was looked at; name one up "
            "to there"
        )


async def check_holds_key(
    source: Source, key: str, *, tokens: Sequence[str] = (), scope: Scope = Scope.GLOBAL, kept: str = "it is kept"
) -> None:
    """Check that some event is of a session, an agent or an exchange that is called ``key``.

    Args:
        source: The log.
        key: The name.
        tokens: Names of partitions: these always exist.
        scope: Of what kind the key must be; by default, of any.
        kept: What is kept under such keys, for the message, such as ``states are kept``.

    Raises:
        NothingFound: no event is.
        OtherKind: the key is of another kind.
    """
    if key in tokens:
        return
    use = await use_of_key(source, key, scope)
    if use.fits(scope):
        return
    if use.is_anything:
        raise OtherKind(use.complaint(key, kept, scope))
    raise NothingFound(
        f"no event in the {source.name} is of a session or agent {key!r}, so that nothing of it was looked at: "
        "`neuraxis log tail --no-follow` shows whose events are there"
    )


async def _time_of(source: Source, seq: int) -> int:
    async for batch in source.as_stored([EVERYTHING], seq - 1, seq):
        return batch[0].time_ns
    return 0


def _remedy(source: Source) -> str:
    if isinstance(source, LedgerSource) and source.lacks_wal:
        return (
            f"it was copied without {source.file.name}-wal, which held them; `neuraxis backup` copies all of a ledger"
        )
    return "send an input with `neuraxis ask`, or name another log"


def _point_text(point: Point) -> str:
    return f"sequence {point.seq:,}" if point.seq != END.seq else to_milliseconds(point.time_ns)
