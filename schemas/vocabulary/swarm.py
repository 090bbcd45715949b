"""The swarm: how coherent all actors and agents are together, and which stages are lost. Owner: ``swarm``."""

from functools import partial
from typing import Annotated, Literal

import msgspec

from schemas.actor import Scope
from schemas.availability import Lack
from schemas.entry import Entry, Grouping, Severity, own_entries, own_events
from schemas.event import Event, Unit

Count = Annotated[int, msgspec.Meta(ge=0)]
Sharding = Literal["session", "agent", "global"]
"""The key that a stage's partitions are made by; ``global``: it has one partition."""

Duration = Annotated[float, msgspec.Meta(ge=0.0)]
"""A duration in the unit that the field's name ends with."""


class SwarmMeasured(Event, frozen=True, kw_only=True, tag="forged_id.swarm.measured"):
    """The swarm's coherence index, recorded when it moved by 0.05 or more.

    ``sci`` = 0.30 precedent agreement + 0.25 health alignment + 0.25 delivered share + 0.20 decision consistency;
    healthy from 0.70 on, and never while a stage is ``lost``: then health alignment is 0, and the delivered share is
    that of the partitions which are served.

    Attributes:
        precedent_agreement: Of the precedents found for an input, the share that argues as most of them do: for doing
            what it asks, or against it.
        health_alignment: 1 - the variance of the actors' health; an actor's health is the share of its decisions that
            did not fail.
        delivered_share: Share of the inputs whose exchange came to an end other than FAILED.
        decision_consistency: Share of the decisions on inputs similar to the same precedent that agree with most.
    """

    sci: Unit
    precedent_agreement: Unit
    health_alignment: Unit
    delivered_share: Unit
    decision_consistency: Unit
    healthy: bool
    lost: tuple[str, ...] = ()


class StageLost(Event, frozen=True, kw_only=True, tag="forged_id.swarm.stage_lost"):
    """Nobody serves these partitions of an actor or effector: what waits for them will get no answer.

    Measured by the shell from workers' heartbeats, and recorded once it is certain. Recorded again when the partitions
    or the reason change, and at intervals while it lasts; ``swarm.stage_found`` ends it.

    Attributes:
        actor: The actor, effector, or ``ledger``.
        scope: The key that it is sharded by.
        partitions: Its partitions that are not served now, all of them.
        of: How many it has.
        reason: Why: no living worker, one that does not get beyond recovering, or one that does not advance.
        absent_ms: How long it has been so, for the partition that has been so the longest.
    """

    actor: str
    scope: Sharding
    partitions: tuple[str, ...]
    of: Count
    reason: Lack
    absent_ms: Count


class StageFound(Event, frozen=True, kw_only=True, tag="forged_id.swarm.stage_found"):
    """Every partition of an actor or effector that was lost is served again, or it need not run and is left out."""

    actor: str


class OverBudget(Event, frozen=True, kw_only=True, tag="forged_id.swarm.over_budget"):
    """An actor's decisions took longer than its latency budget: how many in a window, in all of its workers.

    Measured by the shells; no decision depends on it. At most one per window and actor.
    """

    actor: str
    budget_ms: Duration
    count: Count
    worst_ms: Duration
    window_s: Duration


class WithinBudget(Event, frozen=True, kw_only=True, tag="forged_id.swarm.within_budget"):
    """An actor that was over its budget has kept it for ``quiet_s`` seconds."""

    actor: str
    quiet_s: Duration


SwarmConfigured, SwarmFailed = own_events("swarm")

_entry = partial(Entry, owner="swarm", scope=Scope.GLOBAL)

ENTRIES = (
    _entry(
        meaning="The swarm's coherence index and its four parts, when it moved.",
        sample=SwarmMeasured(
            sci=0.9475,
            precedent_agreement=1.0,
            health_alignment=0.95,
            delivered_share=0.84,
            decision_consistency=1.0,
            healthy=True,
        ),
    ),
    _entry(
        meaning="Nobody serves a stage: what waits for it gets no answer.",
        sample=StageLost(
            actor="arbiter", scope="session", partitions=("00", "01"), of=2, reason="no_owner", absent_ms=8_000
        ),
        severity=Severity.CRITICAL,
        grouping=Grouping(
            by_agent=False, fields=("actor",), copied_fields=("actor", "reason", "partitions", "of", "absent_ms")
        ),
        ended_by=(StageFound,),
        spontaneous=True,
    ),
    _entry(
        meaning="A stage that was lost is served again.",
        sample=StageFound(actor="arbiter"),
        spontaneous=True,
    ),
    _entry(
        meaning="Decisions of a stage took longer than its latency budget.",
        sample=OverBudget(actor="reflex", budget_ms=10.0, count=3, worst_ms=14.2, window_s=10.0),
        severity=Severity.WARNING,
        grouping=Grouping(
            by_agent=False, fields=("actor",), copied_fields=("actor", "budget_ms", "count", "worst_ms", "window_s")
        ),
        ended_by=(WithinBudget,),
        spontaneous=True,
    ),
    _entry(
        meaning="A stage that was over its latency budget keeps it again.",
        sample=WithinBudget(actor="reflex", quiet_s=60.0),
        spontaneous=True,
    ),
    *own_entries(
        SwarmConfigured,
        SwarmFailed,
        owner="swarm",
        scope=Scope.GLOBAL,
        then="its exchange, if it has one, ends as FAILED",
        failed_topic="forged_id.response.emitted",
    ),
)
