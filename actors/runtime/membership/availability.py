"""Who serves which stage according to heartbeats, and since when nobody does.

One check of the heartbeats shows which stages nobody serves, but proves little. The last heartbeat of a dead worker
expires late, a worker that takes over may still be starting, and the observer itself may have been cut off. So an
absence is counted from the last check that found the stage served. Time during which nobody watched is never counted.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from actors.runtime.membership.heartbeat import Heartbeat, heartbeat_of
from schemas.availability import Availability, Lack, Overrun, UnservedPartition
from schemas.input_path import names_of, scopes
from schemas.subjects import Partitions

BLIND_AFTER_S = 3.0
"""If more seconds pass between two checks, that time counts as not watched: the observer was delayed."""

WINDOW_S = 10.0
"""Seconds over which decisions over budget are counted together."""

StagePartition = tuple[str, str]
"""A stage and a partition of it."""


def unserved_partitions(heartbeats: Iterable[Heartbeat], partitions: Partitions) -> dict[StagePartition, Lack]:
    """Return every partition of every stage that nobody serves, with the reason, in order.

    Some process has it, but it does not advance (``stalled``), or still reads the log (``recovering``); or no process
    has it (``no_owner``).
    """
    serves: set[StagePartition] = set()
    stalled: set[StagePartition] = set()
    hosted: set[str] = set()
    for heartbeat in heartbeats:
        hosted.update(heartbeat.actors, heartbeat.stalled, heartbeat.recovering)
        serves.update((stage, name) for stage, names in heartbeat.serves.items() for name in names)
        stalled.update((stage, name) for stage, names in heartbeat.stalled.items() for name in names)
    absent = (key for key in _all_keys(partitions) if key not in serves)
    return {key: "stalled" if key in stalled else "recovering" if key[0] in hosted else "no_owner" for key in absent}


@lru_cache(maxsize=8)
def _all_keys(partitions: Partitions) -> tuple[StagePartition, ...]:
    """Return every partition of every stage, in order."""
    return tuple((stage, name) for stage, scope in scopes().items() for name in names_of(scope, partitions))


def readable_heartbeats(members: Mapping[str, bytes]) -> list[Heartbeat]:
    """Return the heartbeats that can be read."""
    return [heartbeat for value in members.values() if (heartbeat := heartbeat_of(value)) is not None]


class AvailabilityWatch:
    """Examines the heartbeats again and again. All times are seconds of one monotonic clock.

    Usually the heartbeats equal those of the check before; then a check costs almost nothing.
    """

    def __init__(self, partitions: Partitions) -> None:
        self._partitions = partitions
        self._began: float | None = None
        self._checked_at = 0.0
        self._members: Mapping[str, bytes] = {}
        self._lacks: dict[StagePartition, Lack] = {}
        self._since: dict[StagePartition, float] = {}
        self._never_served = set(_all_keys(partitions))
        self._counts: dict[tuple[str, str], int] = {}  # (member, stage) -> its decisions over budget, when last checked
        self._window_began = 0.0
        self._overruns: dict[str, Overrun] = {}  # stage -> its decisions over budget in the window
        self._overran_at: dict[str, float] = {}  # stage -> when the last of them was noticed

    @property
    def lacks(self) -> Mapping[StagePartition, Lack]:
        """The partitions that nobody served at the last check, with the reason."""
        return self._lacks

    @property
    def checked_at(self) -> float:
        """When the heartbeats were last examined."""
        return self._checked_at

    def note_blind(self) -> None:
        """Note that no heartbeats could be read: every absence is counted from the next check on."""
        self._began = None

    def check(self, members: Mapping[str, bytes], now: float) -> None:
        """Examine the heartbeats of living members at a time ``now``."""
        if self._began is not None and now - self._checked_at > BLIND_AFTER_S:
            self.note_blind()
        new = self._began is None
        if new:
            self._began = self._window_began = self._checked_at = now
            self._since.clear()
            self._overruns.clear()
        if new or members != self._members:
            readable = {
                name: heartbeat for name, value in members.items() if (heartbeat := heartbeat_of(value)) is not None
            }
            self._members = members
            self._lacks = unserved_partitions(readable.values(), self._partitions)
            # A stage that is absent now may have been served until the last check.
            self._since = {key: self._since.get(key, self._checked_at) for key in self._lacks}
            self._never_served &= self._lacks.keys()
            self._count(readable, new, now)
        self._checked_at = now

    def away_s(self, key: StagePartition, now: float) -> float:
        """Return for how many seconds nobody has served a partition, as far as is known."""
        return now - self._since.get(key, now)

    def has_seen(self, key: StagePartition) -> bool:
        """Return whether anybody was ever seen to serve a partition."""
        return key not in self._never_served

    def availability(self, now: float) -> Availability | None:
        """Return what is known now; None while no heartbeats can be read."""
        if self._began is None:
            return None
        closed = now - self._window_began >= WINDOW_S
        return Availability(
            partitions=self._partitions,
            absent=tuple(self._absence(key, lack, now) for key, lack in self._lacks.items()),
            overran=dict(self._overruns) if closed else None,
            quiet_ms={stage: _ms(now - at) for stage, at in self._overran_at.items()},
            window_ms=_ms(now - self._window_began),
            watched_ms=_ms(now - self._began),
        )

    def note_recorded(self, availability: Availability, now: float) -> None:
        """Note that ``availability`` was recorded: a counting window that ended with it is over."""
        if availability.overran is not None:
            self._overruns.clear()
            self._window_began = now

    def _absence(self, key: StagePartition, lack: Lack, now: float) -> UnservedPartition:
        stage, name = key
        for_ms = _ms(self.away_s(key, now))
        return UnservedPartition(stage=stage, partition=name, lack=lack, for_ms=for_ms, seen=self.has_seen(key))

    def _count(self, heartbeats: Mapping[str, Heartbeat], new: bool, now: float) -> None:
        """Add the decisions over budget since the last check."""
        counted: dict[tuple[str, str], int] = {}
        for member, heartbeat in heartbeats.items():
            for stage, overrun in heartbeat.overruns.items():
                key = member, stage
                counted[key] = overrun.count
                # This worker ran before the first check here: another observer reports what it counted until then.
                before = self._counts.get(key, overrun.count if new else 0)
                if overrun.count > before:
                    self._overruns[stage] = with_overrun(self._overruns.get(stage), overrun, overrun.count - before)
                    self._overran_at[stage] = now
        self._counts = counted


def with_overrun(known: Overrun | None, overrun: Overrun, count: int) -> Overrun:
    """Return the overruns of a stage after ``count`` further decisions over its budget."""
    if known is None:
        return Overrun(budget_ms=overrun.budget_ms, count=count, worst_ms=overrun.worst_ms)
    worst_ms = max(known.worst_ms, overrun.worst_ms)
    return Overrun(budget_ms=overrun.budget_ms, count=known.count + count, worst_ms=worst_ms)


def by_stage(unserved: Mapping[StagePartition, Lack], stages: Sequence[str]) -> dict[str, tuple[Lack, tuple[str, ...]]]:
    """Return for each of these stages the worst reason and the partitions that nobody serves."""
    grouped: dict[str, list[tuple[Lack, str]]] = {}
    for (stage, name), lack in unserved.items():
        if stage in stages:
            grouped.setdefault(stage, []).append((lack, name))
    order: Sequence[Lack] = ("no_owner", "stalled", "recovering")
    return {
        stage: (min((lack for lack, _ in each), key=order.index), tuple(name for _, name in each))
        for stage, each in grouped.items()
    }


def _ms(seconds: float) -> int:
    return max(0, round(seconds * 1000))
