"""Which measurements become facts, and what the index makes of them."""

from collections.abc import Mapping

import pytest

from actors.swarm.settings import SwarmSettings
from schemas.availability import Availability, Lack, Overrun, UnservedPartition
from schemas.catalogue import entry_of
from schemas.event import Event
from schemas.input_path import REQUIRED
from schemas.subjects import Partitions
from schemas.vocabulary.llm import LlmCompleted
from schemas.vocabulary.responder import ResponseRequested
from schemas.vocabulary.swarm import OverBudget, StageFound, StageLost, SwarmMeasured, WithinBudget
from tests.actors.scenario import Partition
from tests.actors.swarm.builders import ASKED, at, swarm
from tests.each import each

GRACE_MS, START_MS, RECOVERY_MS, REPEAT_MS = 8_000, 15_000, 30_000, 15_000
TOKENS = ("00", "01")


def away(
    stage: str, for_ms: int, *partitions: str, lack: Lack = "no_owner", seen: bool = True
) -> tuple[UnservedPartition, ...]:
    names = partitions or TOKENS
    return tuple(UnservedPartition(stage=stage, partition=name, lack=lack, for_ms=for_ms, seen=seen) for name in names)


def attend(
    partition: Partition,
    *absent: UnservedPartition,
    overran: Mapping[str, Overrun] | None = None,
    quiet_ms: Mapping[str, int] | None = None,
) -> list[Event]:
    """Let swarm record a measurement; return the events."""
    seen = Availability(
        partitions=Partitions(agents=2, sessions=2),
        absent=absent,
        overran=overran,
        quiet_ms=quiet_ms or {},
        window_ms=10_000,
        watched_ms=100_000,
    )
    assert partition.actor.on_availability is not None
    events = list(partition.actor.on_availability(partition.state, seen))
    partition.fold(*(partition.own(event) for event in events))
    return events


def lost(stage: str, *partitions: str, absent_ms: int = GRACE_MS, reason: Lack = "no_owner") -> StageLost:
    names = partitions or TOKENS
    return StageLost(actor=stage, scope="session", partitions=names, of=2, reason=reason, absent_ms=absent_ms)


@each("stage", [stage for stage in REQUIRED if stage not in ("clock", "intuition", "memory")])
def test_a_required_stage_is_lost_after_its_grace_and_found_when_it_is_served(stage: str) -> None:
    partition = swarm()
    assert attend(partition, *away(stage, GRACE_MS - 1)) == []
    assert attend(partition, *away(stage, GRACE_MS)) == [lost(stage)]
    assert attend(partition, *away(stage, GRACE_MS + 500)) == [], "told once"
    assert attend(partition) == [StageFound(actor=stage)]
    assert attend(partition) == []


def test_a_stage_that_was_never_seen_gets_time_to_start() -> None:
    partition = swarm()
    assert attend(partition, *away("arbiter", START_MS - 1, seen=False)) == []
    assert attend(partition, *away("arbiter", START_MS, seen=False)) == [lost("arbiter", absent_ms=START_MS)]


def test_a_worker_that_reads_its_past_gets_time_for_that() -> None:
    partition = swarm()
    assert attend(partition, *away("arbiter", RECOVERY_MS - 1, lack="recovering")) == []
    [event] = attend(partition, *away("arbiter", RECOVERY_MS, lack="recovering"))
    assert event == lost("arbiter", absent_ms=RECOVERY_MS, reason="recovering")


def test_one_partition_alone_is_lost_alone_and_what_changes_is_told() -> None:
    partition = swarm()
    assert attend(partition, *away("arbiter", GRACE_MS, "01")) == [lost("arbiter", "01")]
    both = (*away("arbiter", GRACE_MS, "00"), *away("arbiter", GRACE_MS + 9, "01"))
    assert attend(partition, *both) == [lost("arbiter", absent_ms=GRACE_MS + 9)]
    assert attend(partition, *away("arbiter", GRACE_MS + 99, "01")) == [lost("arbiter", "01", absent_ms=GRACE_MS + 99)]
    assert attend(partition) == [StageFound(actor="arbiter")]


def test_a_stage_that_stays_lost_is_told_of_again_now_and_then_by_whoever_looks() -> None:
    partition = swarm()
    attend(partition, *away("arbiter", GRACE_MS))
    assert attend(partition, *away("arbiter", GRACE_MS + REPEAT_MS - 1)) == []
    assert len(attend(partition, *away("arbiter", GRACE_MS + REPEAT_MS))) == 1
    assert attend(partition, *away("arbiter", 10)) == [lost("arbiter", absent_ms=10)], "another worker looks by now"
    assert attend(partition, *away("arbiter", 20)) == []


@each("stage", ["drift", "reflection", "llm", "guardrails", "act", "delegate"])
def test_a_stage_that_was_left_out_on_purpose_raises_no_alarm(stage: str) -> None:
    assert attend(swarm(), *away(stage, 10**8, "all", seen=False)) == []


def test_unless_something_waits_for_it() -> None:
    partition = swarm()
    partition.hear(entry_of(ResponseRequested).sample, at(1))
    [event] = attend(partition, *away("llm", START_MS, "all", seen=False))
    assert isinstance(event, StageLost)
    assert (event.actor, event.of) == ("llm", 1)


def test_what_has_answered_is_not_waited_for() -> None:
    partition = swarm()
    partition.hear(entry_of(ResponseRequested).sample, at(1))
    partition.hear(entry_of(LlmCompleted).sample, at(1))
    assert attend(partition, *away("llm", START_MS, "all", seen=False)) == []


@each("stage", ["alerts", "ledger", "webhook"])
def test_those_who_record_and_tell_are_missed_once_they_were_there(stage: str) -> None:
    assert attend(swarm(), *away(stage, 10**8, "all", seen=False)) == []
    assert len(attend(swarm(), *away(stage, GRACE_MS, "all"))) == 1


def test_a_stage_that_need_not_run_and_was_taken_down_for_good_is_lost_no_longer() -> None:
    for stage, kept, found in (
        ("webhook", ("webhook",), False),
        ("webhook", (), True),
        ("drift", (), True),
        ("llm", (), False),  # the next exchange would wait for it
        ("arbiter", (), False),
    ):
        partition = swarm()
        attend(partition, *away(stage, RECOVERY_MS, "all", lack="stalled"))
        partition.configure(SwarmSettings(kept=kept))
        [event] = attend(partition, *away(stage, RECOVERY_MS + 9, "all"))
        assert isinstance(event, StageLost), "its worker may come back"
        assert attend(partition, *away(stage, RECOVERY_MS + REPEAT_MS, "all")) == []
        [event] = attend(partition, *away(stage, RECOVERY_MS + REPEAT_MS + 9, "all"))
        assert isinstance(event, StageFound) is found, stage
        assert attend(partition, *away(stage, RECOVERY_MS + REPEAT_MS + 99, "all")) == []


@each("lack", ["stalled", "recovering"])
def test_whoever_hosts_a_stage_and_does_not_serve_it_is_noticed_whatever_the_stage(lack: Lack) -> None:
    [event] = attend(swarm(), *away("drift", RECOVERY_MS, "00", lack=lack))
    assert isinstance(event, StageLost)
    assert (event.reason, event.scope) == (lack, "agent")


def test_a_stage_without_an_owner_takes_the_index_well_below_healthy_until_it_is_found() -> None:
    partition = swarm()
    attend(partition, *away("arbiter", GRACE_MS))
    [measured] = partition.when(ASKED, at(1))
    assert isinstance(measured, SwarmMeasured)
    assert (measured.sci, measured.healthy, measured.lost) == (0.5, False, ("arbiter",))
    assert partition.when(ASKED, at(2)) == []
    attend(partition)
    [measured] = partition.when(ASKED, at(3))
    assert isinstance(measured, SwarmMeasured)
    assert (measured.sci, measured.healthy, measured.lost) == (1.0, True, ())


def test_a_lost_partition_is_never_healthy_whatever_the_number() -> None:
    partition = swarm(health_weight=0.0, delivered_weight=0.5)
    attend(partition, *away("arbiter", GRACE_MS, "01"))
    [measured] = partition.when(ASKED, at(1))
    assert isinstance(measured, SwarmMeasured)
    assert (measured.sci, measured.healthy) == (0.75, False)


def test_decisions_over_budget_are_recorded_once_a_window_and_their_end_after_a_while() -> None:
    partition, over = swarm(), {"reflex": Overrun(budget_ms=10.0, count=3, worst_ms=14.2)}
    recorded = OverBudget(actor="reflex", budget_ms=10.0, count=3, worst_ms=14.2, window_s=10.0)
    assert attend(partition, overran=over) == [recorded]
    assert attend(partition, overran=None, quiet_ms={"reflex": 60_000}) == [], "not within a window"
    assert attend(partition, overran={}, quiet_ms={"reflex": 59_999}) == []
    assert attend(partition, overran={}, quiet_ms={"reflex": 60_000}) == [WithinBudget(actor="reflex", quiet_s=60.0)]
    assert attend(partition, overran={}) == []


def test_recorded_settings_keep_what_is_lost() -> None:
    partition = swarm()
    attend(partition, *away("arbiter", GRACE_MS))
    partition.configure(SwarmSettings(window_ms=300_000))
    assert attend(partition) == [StageFound(actor="arbiter")]


def test_a_stage_that_nobody_knows_cannot_be_required() -> None:
    with pytest.raises(ValueError, match="there is no stage 'arbitre'"):
        SwarmSettings(required=("arbitre",))
