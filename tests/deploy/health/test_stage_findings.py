"""What the doctor concludes of stages, from what living processes say of themselves."""

from typing import Any

from actors.runtime.membership.heartbeat import Heartbeat
from deploy.health.findings import Verdict
from deploy.health.stage_check import judge_budgets, judge_snapshots, judge_stages
from deploy.health.stage_watch import NEEDED, unserved_text
from schemas.availability import Overrun
from schemas.input_path import names_of, scopes
from schemas.subjects import Partitions

PARTITIONS = Partitions(agents=1, sessions=2)


def serving(*without: tuple[str, str], **more: Any) -> Heartbeat:
    """What a process says that serves every stage but some partitions."""
    places = [(stage, name) for stage, scope in scopes().items() for name in names_of(scope, PARTITIONS)]
    serves: dict[str, tuple[str, ...]] = {}
    for stage, name in places:
        if (stage, name) not in without:
            serves[stage] = (*serves.get(stage, ()), name)
    return Heartbeat((), serves=serves, **more)


def test_a_set_in_which_every_stage_is_served_is_well() -> None:
    assert judge_stages([serving()], PARTITIONS).verdict is Verdict.OK


def test_a_stage_without_an_owner_fails_by_name_with_how_to_run_it() -> None:
    found = judge_stages([serving(("arbiter", "00"), ("arbiter", "01"))], PARTITIONS)
    assert (found.verdict, found.detail) == (Verdict.FAIL, "not served: arbiter (no owner)")
    assert "neuraxis worker arbiter" in found.remedy


def test_one_partition_alone_is_named() -> None:
    found = judge_stages([serving(("swarm", "all"), ("breaker", "01"), stalled={"breaker": ("01",)})], PARTITIONS)
    assert found.detail == "not served: breaker 01 (stalled), swarm (no owner)"


def test_what_nobody_has_to_run_may_be_left_out_and_is_a_warning_where_it_is_run_and_does_not_serve() -> None:
    left_out = serving(("drift", "00"), ("ledger", "all"), ("llm", "all"))
    assert judge_stages([left_out], PARTITIONS).verdict is Verdict.OK
    assert judge_stages([left_out], PARTITIONS, (*NEEDED, "llm")).verdict is Verdict.FAIL, "a set with a model needs it"
    waits = serving(("ledger", "all"), stalled={"ledger": ("all",)})
    found = judge_stages([waits], PARTITIONS)
    assert (found.verdict, found.detail) == (Verdict.WARN, "hosted, not served: ledger (stalled)")


def test_where_nobody_lives_everything_that_is_needed_is_named() -> None:
    found = judge_stages([], PARTITIONS)
    assert all(stage in found.detail for stage in NEEDED)
    assert unserved_text({}, PARTITIONS) == ""


def test_decisions_over_budget_are_added_up_over_workers() -> None:
    assert judge_budgets([serving()]).verdict is Verdict.OK
    slow = [
        serving(overruns={"reflex": Overrun(budget_ms=10.0, count=3, worst_ms=14.25)}),
        serving(overruns={"reflex": Overrun(budget_ms=10.0, count=1_000, worst_ms=11.0)}),
    ]
    found = judge_budgets(slow)
    assert found.verdict is Verdict.WARN
    assert "reflex 1,003 times (10 ms; of late up to 14.25 ms)" in found.detail


def test_snapshots_that_are_not_saved_are_a_warning_with_their_partitions() -> None:
    assert judge_snapshots([serving()]).verdict is Verdict.OK
    found = judge_snapshots([serving(unsaved={"memory": ("00", "01")})])
    assert (found.verdict, found.detail) == (Verdict.WARN, "the latest could not be saved: memory 00 01")


def test_snapshots_of_one_stage_that_several_workers_cannot_save_are_all_named() -> None:
    found = judge_snapshots([serving(unsaved={"memory": ("02", "01")}), serving(unsaved={"memory": ("00",)})])
    assert found.detail == "the latest could not be saved: memory 00 01 02"
