"""Turns a measurement of the stages into the facts that are worth recording. Pure.

A measurement depends on when it was made, so it cannot be replayed. What is recorded of it is a fact in the log, and
all decisions are based on that.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

import msgspec

from actors.swarm.asked_stages import ASKED_STAGES
from actors.swarm.settings import SwarmSettings
from schemas.actor import Scope
from schemas.availability import Availability, Lack, UnservedPartition
from schemas.event import Event
from schemas.input_path import names_of, scopes
from schemas.persistent import Map
from schemas.vocabulary.swarm import OverBudget, StageFound, StageLost, WithinBudget

_GRAVEST_FIRST: tuple[Lack, ...] = ("no_owner", "stalled", "recovering")


class LostStage(msgspec.Struct, frozen=True):
    """What was last recorded about a stage that nobody serves.

    Which of its ``of`` partitions nobody serves, why, and for how long then (``absent_ms``).
    """

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
    over_budget: Map[str, bool],
    asked: Map[str, int],
    availability: Availability,
    settings: SwarmSettings,
) -> Iterator[Event]:
    """Yield what is to be recorded of a measurement.

    Args:
        lost: The stages that are recorded as lost.
        over_budget: The stages that are recorded as over their latency budget.
        asked: The stages that something was asked of lately: each of their partitions must be served.
        availability: The measurement.
        settings: How long a stage may be away before it is lost.
    """
    absent = {stage: tuple(each) for stage, each in groupby(availability.absent, key=lambda each: each.stage)}
    for stage, absent_partitions in absent.items():
        recorded = lost.get(stage)
        if recorded is not None and stage not in asked and _is_left_out(stage, absent_partitions, recorded, settings):
            yield StageFound(actor=stage)
        elif (event := _lost(stage, absent_partitions, recorded, stage in asked, availability, settings)) is not None:
            yield event
    for stage in sorted(lost):
        if not any(each.partition in lost[stage].partitions for each in absent.get(stage, ())):
            yield StageFound(actor=stage)
    yield from _budgets(over_budget, availability, settings)


def _is_left_out(
    stage: str, absent_partitions: Sequence[UnservedPartition], recorded: LostStage, settings: SwarmSettings
) -> bool:
    """Whether a lost stage has had no worker for a while, and need not run: it was taken down for good.

    A stage that exchanges ask, such as a model, stays lost: the next exchange would wait for it in vain.
    """
    if stage in settings.required or stage in settings.kept or stage in ASKED_STAGES:
        return False
    # A worker that hosts it for a moment and fails changes the recorded reason: the time then counts anew.
    without_owner = recorded.reason == "no_owner" and all(each.lack == "no_owner" for each in absent_partitions)
    return without_owner and max(each.for_ms for each in absent_partitions) - recorded.absent_ms >= settings.repeat_ms


def _lost(
    stage: str,
    absent_partitions: Sequence[UnservedPartition],
    recorded: LostStage | None,
    asked: bool,
    measured: Availability,
    settings: SwarmSettings,
) -> StageLost | None:
    recorded_partitions = set(recorded.partitions) if recorded is not None else set()
    certain = [
        each
        for each in absent_partitions
        if each.partition in recorded_partitions or _is_certain(each, asked, settings)
    ]
    if not certain:
        return None
    scope = scopes().get(stage, Scope.GLOBAL)
    stage_lost = StageLost(
        actor=stage,
        scope=scope.value,
        partitions=tuple(sorted(each.partition for each in certain)),
        of=len(names_of(scope, measured.partitions)),
        reason=min((each.lack for each in certain), key=_GRAVEST_FIRST.index),
        absent_ms=max(each.for_ms for each in certain),
    )
    return stage_lost if recorded is None or _is_news(stage_lost, recorded, settings) else None


def _is_certain(partition: UnservedPartition, asked: bool, settings: SwarmSettings) -> bool:
    if partition.for_ms < _grace_ms(partition, settings):
        return False
    # A stage that a worker hosts is meant to be served. A stage that nobody hosts may be left out on purpose, unless
    # something waits.
    wanted = partition.stage in settings.required or (partition.stage in settings.kept and partition.seen)
    return partition.lack != "no_owner" or asked or wanted


def _grace_ms(partition: UnservedPartition, settings: SwarmSettings) -> int:
    if partition.lack == "recovering":
        return settings.recovery_grace_ms
    return settings.owner_grace_ms if partition.seen else settings.start_grace_ms


def _is_news(stage_lost: StageLost, recorded: LostStage, settings: SwarmSettings) -> bool:
    if (stage_lost.partitions, stage_lost.reason) != (recorded.partitions, recorded.reason):
        return True
    # A time shorter than the recorded one: another worker measures now, and counts from when it began.
    return not 0 <= stage_lost.absent_ms - recorded.absent_ms < settings.repeat_ms


def _budgets(over_budget: Map[str, bool], measured: Availability, settings: SwarmSettings) -> Iterator[Event]:
    if measured.overran is None:
        return
    for stage, overrun in sorted(measured.overran.items()):
        yield OverBudget(
            actor=stage,
            budget_ms=overrun.budget_ms,
            count=overrun.count,
            worst_ms=overrun.worst_ms,
            window_s=measured.window_ms / 1000,
        )
    for stage in sorted(over_budget):
        quiet_ms = measured.quiet_ms.get(stage, measured.watched_ms)
        if stage not in measured.overran and quiet_ms >= settings.budget_quiet_ms:
            yield WithinBudget(actor=stage, quiet_s=quiet_ms / 1000)
