"""Who serves which stage according to heartbeats, and since when nobody does.

A single look shows which stages nobody serves, but it is not proof. A lease expires late, a worker that takes over may
still be starting, and the observer itself may have been cut off. So an absence is counted from the last time the stage
was seen served. Time during which nobody watched is never counted.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from actors.runtime.membership.heartbeat import Heartbeat, heartbeat_of
from schemas.availability import Availability, Lack, Overrun, UnservedPartition
from schemas.stages import names_of, scopes
from schemas.subjects import Partitions

BLIND_AFTER_S = 3.0
"""Seconds between two looks beyond which the time between them counts as not watched: the observer was delayed."""

WINDOW_S = 10.0
"""Seconds over which decisions over budget are counted together."""

Place = tuple[str, str]
"""A stage and a partition of it."""


def unserved_partitions(presences: Iterable[Heartbeat], partitions: Partitions) -> dict[Place, Lack]:
    """Return every partition of every stage that nobody serves with the reason, in order."""
    serves: set[Place] = set()
    stalled: set[Place] = set()
    hosted: set[str] = set()
    for presence in presences:
        hosted.update(presence.actors, presence.stalled, presence.recovering)
        serves.update((stage, name) for stage, names in presence.serves.items() for name in names)
        stalled.update((stage, name) for stage, names in presence.stalled.items() for name in names)
    away = (place for place in _places(partitions) if place not in serves)
    return {
        place: "stalled" if place in stalled else "recovering" if place[0] in hosted else "no_owner" for place in away
    }


@lru_cache(maxsize=8)
def _places(partitions: Partitions) -> tuple[Place, ...]:
    """Return every partition of every stage, in order."""
    return tuple((stage, name) for stage, scope in scopes().items() for name in names_of(scope, partitions))


def readable_heartbeats(members: Mapping[str, bytes]) -> list[Heartbeat]:
    """Return the heartbeats that can be read."""
    return [presence for value in members.values() if (presence := heartbeat_of(value)) is not None]


class AvailabilityWatch:
    """Examines the heartbeats again and again. All times are seconds of one monotonic clock.

    Most heartbeats equal those of the look before; such a look costs almost nothing.
    """

    def __init__(self, partitions: Partitions) -> None:
        self._partitions = partitions
        self._began: float | None = None
        self._looked = 0.0
        self._members: Mapping[str, bytes] = {}
        self._lacks: dict[Place, Lack] = {}
        self._since: dict[Place, float] = {}
        self._unseen = set(_places(partitions))
        self._counted: dict[tuple[str, str], int] = {}
        self._window_began = 0.0
        self._over: dict[str, Overrun] = {}
        self._over_at: dict[str, float] = {}

    @property
    def lacks(self) -> Mapping[Place, Lack]:
        """The partitions that nobody served at the last look, with the reason."""
        return self._lacks

    def lose_sight(self) -> None:
        """Note that no heartbeats could be read: every absence is counted from the next look on."""
        self._began = None

    def look(self, members: Mapping[str, bytes], now: float) -> None:
        """Take in the heartbeats of living members at a time ``now``."""
        if self._began is not None and now - self._looked > BLIND_AFTER_S:
            self.lose_sight()
        new = self._began is None
        if new:
            self._began = self._window_began = self._looked = now
            self._since.clear()
            self._over.clear()
        if new or members != self._members:
            said = {name: presence for name, value in members.items() if (presence := heartbeat_of(value)) is not None}
            self._members = members
            self._lacks = unserved_partitions(said.values(), self._partitions)
            # A stage that is absent now may have been served until the last look.
            self._since = {place: self._since.get(place, self._looked) for place in self._lacks}
            self._unseen &= self._lacks.keys()
            self._count(said, new, now)
        self._looked = now

    def away_s(self, place: Place, now: float) -> float:
        """Return for how many seconds nobody has served a partition, as far as is known."""
        return now - self._since.get(place, now)

    def has_seen(self, place: Place) -> bool:
        """Whether anybody was ever seen to serve a partition."""
        return place not in self._unseen

    def attendance(self, now: float) -> Availability | None:
        """Return what is known now; None while no heartbeats can be read."""
        if self._began is None:
            return None
        closed = now - self._window_began >= WINDOW_S
        return Availability(
            partitions=self._partitions,
            absent=tuple(self._absence(place, lack, now) for place, lack in self._lacks.items()),
            overran=dict(self._over) if closed else None,
            quiet_ms={stage: _ms(now - at) for stage, at in self._over_at.items()},
            window_ms=_ms(now - self._window_began),
            watched_ms=_ms(now - self._began),
        )

    def taken(self, attendance: Availability, now: float) -> None:
        """Note that ``attendance`` was recorded: a counting window that ended with it is over."""
        if attendance.overran is not None:
            self._over.clear()
            self._window_began = now

    def _absence(self, place: Place, lack: Lack, now: float) -> UnservedPartition:
        stage, name = place
        for_ms = _ms(self.away_s(place, now))
        return UnservedPartition(stage=stage, partition=name, lack=lack, for_ms=for_ms, seen=self.has_seen(place))

    def _count(self, said: Mapping[str, Heartbeat], new: bool, now: float) -> None:
        """Add the decisions over budget since the last look."""
        counted: dict[tuple[str, str], int] = {}
        for member, presence in said.items():
            for stage, overrun in presence.overruns.items():
                key = member, stage
                counted[key] = overrun.count
                # This worker was there before the first look here: what it counted until then is for another observer
                # to report.
                before = self._counted.get(key, overrun.count if new else 0)
                if overrun.count > before:
                    self._over[stage] = with_overrun(self._over.get(stage), overrun, overrun.count - before)
                    self._over_at[stage] = now
        self._counted = counted


def with_overrun(known: Overrun | None, overrun: Overrun, count: int) -> Overrun:
    """Return the overruns of a stage after ``count`` further decisions over its budget."""
    if known is None:
        return Overrun(budget_ms=overrun.budget_ms, count=count, worst_ms=overrun.worst_ms)
    worst_ms = max(known.worst_ms, overrun.worst_ms)
    return Overrun(budget_ms=overrun.budget_ms, count=known.count + count, worst_ms=worst_ms)


def by_stage(found: Mapping[Place, Lack], stages: Sequence[str]) -> dict[str, tuple[Lack, tuple[str, ...]]]:
    """Return, for each of these stages, the gravest reason and the partitions that nobody serves."""
    grouped: dict[str, list[tuple[Lack, str]]] = {}
    for (stage, name), lack in found.items():
        if stage in stages:
            grouped.setdefault(stage, []).append((lack, name))
    order: Sequence[Lack] = ("no_owner", "stalled", "recovering")
    return {
        stage: (min((lack for lack, _ in each), key=order.index), tuple(name for _, name in each))
        for stage, each in grouped.items()
    }


def _ms(seconds: float) -> int:
    return max(0, round(seconds * 1000))
