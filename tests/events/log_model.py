"""The log as a list: the plainest reading of the port's rules, and commands to compare an adapter with it."""

from collections.abc import Awaitable, Callable, Sequence
from fnmatch import fnmatchcase
from typing import TypeAlias

import msgspec
from hypothesis import strategies as st

from events.errors import Conflict
from events.log import Append, Fence, Log, Record
from schemas.envelope import MESSAGE_ID

SUBJECTS = tuple(
    f"log.{agent}.{session}.{rest}"
    for agent in ("00", "01")
    for session in ("00", "_")
    for rest in ("reflex.passed", "reflex.blocked", "router.mode_selected")
)
FILTERS = (
    "log.*.00.reflex.>",
    "log.00.*.router.>",
    "log.*.*.reflex.passed",
    "log.01._.>",
    "log.>",
    SUBJECTS[0],
    "log.*.09.>",
)
READINGS = (
    (),
    ("log.>",),
    ("log.*.00.reflex.>", "log.*._.reflex.>"),
    ("log.*.*.reflex.passed", "log.*.*.router.>"),
    (SUBJECTS[2],),
)
DEDUPE_S = 120


class FenceAt(msgspec.Struct, frozen=True):
    """A fence that is ``behind`` the truth by so many of the filter's messages (0: it holds)."""

    filter: str
    behind: int


class DoAppend(msgspec.Struct, frozen=True):
    """An append of (records, fence) parts."""

    parts: tuple[tuple[tuple[Record, ...], FenceAt | None], ...]


class DoRead(msgspec.Struct, frozen=True):
    """A history of a range."""

    filters: tuple[str, ...]
    after: int
    upto: int


class DoLast(msgspec.Struct, frozen=True):
    """A question for the last message of a filter."""

    filter: str


class DoWait(msgspec.Struct, frozen=True):
    """A passing of time."""

    seconds: float


Command: TypeAlias = DoAppend | DoRead | DoLast | DoWait
Result: TypeAlias = int | str | list[tuple[int, str, bytes]] | None


def _matches(pattern: str, subject: str) -> bool:
    # No token of these subjects holds a dot or a magic character, so the shell's patterns serve as a second opinion.
    if pattern.endswith(">"):
        return fnmatchcase(subject, pattern[:-1] + "*")
    return subject.count(".") == pattern.count(".") and fnmatchcase(subject, pattern)


class NaiveLog:
    """Messages in a list; every question walks it."""

    def __init__(self) -> None:
        self.stored: list[tuple[float, Record]] = []
        self.now = 0.0

    def matching(self, pattern: str) -> list[int]:
        """Return the sequences that match a filter."""
        return [seq for seq, (_, record) in enumerate(self.stored, 1) if _matches(pattern, record.subject)]

    def fence(self, fence: FenceAt) -> Fence:
        """Return the fence that is meant, now."""
        found = [0, *self.matching(fence.filter)]
        return Fence(fence.filter, found[max(0, len(found) - 1 - fence.behind)])

    def append(self, appends: Sequence[Append]) -> int | str:
        """Store, or return the error's code."""
        records = [record for append in appends for record in append.records]
        for append in appends:
            if append.fence and append.fence.last != max(self.matching(append.fence.filter), default=0):
                return Conflict.code
        known = {
            record.headers[MESSAGE_ID]: seq
            for seq, (time, record) in enumerate(self.stored, 1)
            if MESSAGE_ID in record.headers and time > self.now - DEDUPE_S
        }
        ids = [record.headers[MESSAGE_ID] for record in records if MESSAGE_ID in record.headers]
        if len(records) == 1 and ids and ids[0] in known:
            return Conflict.code if any(append.fence for append in appends) else known[ids[0]]
        if len(set(ids)) < len(ids) or not known.keys().isdisjoint(ids):
            return Conflict.code
        self.stored += [(self.now, record) for record in records]
        return len(self.stored)

    def read(self, command: DoRead) -> list[tuple[int, str, bytes]]:
        """Return a history as (sequence, subject, data)."""
        return [
            (seq, record.subject, record.data)
            for seq, (_, record) in enumerate(self.stored, 1)
            if command.after < seq <= command.upto
            and (not command.filters or any(_matches(pattern, record.subject) for pattern in command.filters))
        ]


async def run_commands(log: Log, commands: Sequence[Command], wait: Callable[[float], Awaitable[None]]) -> None:
    """Give the same commands to an adapter and to the naive log; every answer must agree."""
    model = NaiveLog()
    for command in [*commands, DoRead((), 0, 2**40)]:
        expected: Result
        found: Result
        match command:
            case DoAppend(parts):
                appends = [Append(records, model.fence(fence) if fence else None) for records, fence in parts]
                expected, found = model.append(appends), await _append(log, appends)
            case DoRead(filters, after, upto):
                expected = model.read(command)
                found = [(s.seq, s.subject, s.data) async for page in log.history(filters, after, upto) for s in page]
            case DoLast(pattern):
                expected, found = max(model.matching(pattern), default=0), await log.last(pattern)
            case DoWait(seconds):
                model.now += seconds
                expected = found = None
                await wait(seconds)
        assert found == expected, f"{command}: {found} instead of {expected}"


async def _append(log: Log, appends: Sequence[Append]) -> int | str:
    try:
        return await log.append(appends)
    except Conflict as conflict:
        return conflict.code


_records = st.builds(
    lambda subject, message_id, data: Record(subject, {MESSAGE_ID: message_id} if message_id else {}, data),
    st.sampled_from(SUBJECTS),
    st.sampled_from(("", "", "a", "b", "c", "d", "e", "f", "g")),
    st.binary(max_size=4),
)
# A fence that holds is the usual case.
_fences = st.builds(FenceAt, st.sampled_from(FILTERS), st.sampled_from((0, 0, 0, 0, 1, 2)))
_parts = st.tuples(st.lists(_records, min_size=1, max_size=4).map(tuple), st.none() | _fences)
_appends = st.builds(DoAppend, st.lists(_parts, min_size=1, max_size=3).map(tuple))
_lone = st.builds(lambda record, fence: DoAppend((((record,), fence),)), _records, st.none() | _fences)
_reads = st.builds(DoRead, st.sampled_from(READINGS), st.integers(0, 20), st.integers(0, 60))
_lasts = st.builds(DoLast, st.sampled_from(FILTERS))

COMMANDS: st.SearchStrategy[list[Command]] = st.lists(_appends | _lone | _reads | _lasts, max_size=25)
TIMED_COMMANDS: st.SearchStrategy[list[Command]] = st.lists(
    _appends | _lone | _reads | _lasts | st.builds(DoWait, st.sampled_from((1.0, 59.0, 119.0, 120.0))), max_size=40
)
