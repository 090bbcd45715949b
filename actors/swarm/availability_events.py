"""Turns a measurement of the stages into the facts that are worth recording. Pure.

A measurement depends on when it was made, so it cannot be replayed. What is recorded of it is a fact in the log, and
all decisions are based on that.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

import msgspec

from actors.swarm.settings import SwarmSettings
from schemas.actor import Scope
from schemas.availability import Availability, Lack, UnservedPartition
from schemas.event import Event
from schemas.persistent import Map
from schemas.stages import names_of, scopes
from schemas.vocabulary.swarm import OverBudget, StageFound, StageLost, WithinBudget

_GRAVEST: tuple[Lack, ...] = ("no_owner", "stalled", "recovering")


class LostStage(msgspec.Struct, frozen=True):
    """What was last recorded about a stage that nobody serves."""

    partitions: tuple[str, ...]
    of: int
    reason: Lack
    absent_ms: int

    @property
    def served(self) -> float:
        """The share of its partitions that are served, in [0, 1)."""
        return 1.0 - len(self.partitions) / max(1, self.of)


def availability_events(
    lost: Mapping[str, LostStage],
    over: Map[str, bool],
    asked: Map[str, int],
    availability: Availability,
    settings: SwarmSettings,
) -> Iterator[Event]:
    """Yield what is to be recorded of a measurement.

    Args:
        lost: The stages that are recorded as lost.
        over: Those that are recorded as over budget.
        asked: Those that something was asked of lately: nobody may be missing there.
        availability: The measurement.
        settings: How long a stage may be away before it is lost.
    """
    absent = {stage: tuple(each) for stage, each in groupby(availability.absent, key=lambda each: each.stage)}
    for stage, absences in absent.items():
        if (event := _lost(stage, absences, lost.get(stage), stage in asked, availability, settings)) is not None:
            yield event
    for stage in sorted(lost):
        if not _still(lost[stage], absent.get(stage, ())):
            yield StageFound(actor=stage)
    yield from _budgets(over, availability, settings)


def _lost(
    stage: str,
    absences: Sequence[UnservedPartition],
    known: LostStage | None,
    asked: bool,
    seen: Availability,
    settings: SwarmSettings,
) -> StageLost | None:
    held = set(known.partitions) if known is not None else set()
    certain = [each for each in absences if each.partition in held or _is_certain(each, asked, settings)]
    if not certain:
        return None
    scope = scopes().get(stage, Scope.GLOBAL)
    found = StageLost(
        actor=stage,
        scope=scope.value,
        partitions=tuple(sorted(each.partition for each in certain)),
        of=len(names_of(scope, seen.partitions)),
        reason=min((each.lack for each in certain), key=_GRAVEST.index),
        absent_ms=max(each.for_ms for each in certain),
    )
    return found if known is None or _is_news(found, known, settings) else None


def _is_certain(absence: UnservedPartition, asked: bool, settings: SwarmSettings) -> bool:
    if absence.for_ms < _patience_ms(absence, settings):
        return False
    # A stage that a worker hosts is meant to be served. A stage that nobody hosts may be left out on purpose, unless
    # something waits.
    wanted = absence.stage in settings.required or (absence.stage in settings.kept and absence.seen)
    return absence.lack != "no_owner" or asked or wanted


def _patience_ms(absence: UnservedPartition, settings: SwarmSettings) -> int:
    if absence.lack == "recovering":
        return settings.recovery_grace_ms
    return settings.owner_grace_ms if absence.seen else settings.start_grace_ms


def _is_news(found: StageLost, known: LostStage, settings: SwarmSettings) -> bool:
    if (found.partitions, found.reason) != (known.partitions, known.reason):
        return True
    # Shorter than the recorded time: another observer took over, and counts from when it began.
    return not 0 <= found.absent_ms - known.absent_ms < settings.repeat_ms


def _still(known: LostStage, absences: Sequence[UnservedPartition]) -> bool:
    return any(each.partition in known.partitions for each in absences)


def _budgets(over: Map[str, bool], seen: Availability, settings: SwarmSettings) -> Iterator[Event]:
    if seen.overran is None:
        return
    for stage, overrun in sorted(seen.overran.items()):
        yield OverBudget(
            actor=stage,
            budget_ms=overrun.budget_ms,
            count=overrun.count,
            worst_ms=overrun.worst_ms,
            window_s=seen.window_ms / 1000,
        )
    for stage in sorted(over):
        quiet_ms = seen.quiet_ms.get(stage, seen.watched_ms)
        if stage not in seen.overran and quiet_ms >= settings.budget_quiet_ms:
            yield WithinBudget(actor=stage, quiet_s=quiet_ms / 1000)
