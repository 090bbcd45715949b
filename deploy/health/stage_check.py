"""The doctor's checks of the stages: which are not served, which decide too slowly, whose snapshots are not saved."""

from collections import defaultdict
from collections.abc import Sequence

from actors.runtime.membership.availability import by_stage, unserved_partitions, with_overrun
from actors.runtime.membership.heartbeat import Heartbeat
from deploy.cli.rendering.layout.counted_nouns import counted
from deploy.health.findings import Finding, Verdict
from deploy.health.stage_watch import NEEDED, unserved_text
from schemas.availability import Overrun
from schemas.input_path import scopes
from schemas.subjects import Partitions


def judge_stages(alive: Sequence[Heartbeat], partitions: Partitions, stages: Sequence[str] = NEEDED) -> Finding:
    """Judge whether every stage is served, partition by partition.

    Args:
        alive: The heartbeats of living processes.
        partitions: The stream's partition counts.
        stages: The stages that this set needs.
    """
    found = unserved_partitions(alive, partitions)
    needed = by_stage(found, stages)
    if needed:
        names = " ".join(needed)
        remedy = (
            f"run `neuraxis up`, or `neuraxis worker {names}`; one that runs and does not serve says why in its log"
        )
        return Finding("stages", Verdict.FAIL, f"not served: {unserved_text(needed, partitions)}", remedy)
    # Other stages are optional. But where a living worker runs one, it should lead the stage's partitions.
    unserved = by_stage(found, tuple(scopes()))
    others = {stage: (lack, names) for stage, (lack, names) in unserved.items() if lack != "no_owner"}
    if others:
        remedy = "look again, they may be about to; then see the log of their worker"
        return Finding("stages", Verdict.WARN, f"hosted, not served: {unserved_text(others, partitions)}", remedy)
    return Finding("stages", Verdict.OK, f"all {len(stages)} that are needed are served")


def judge_budgets(alive: Sequence[Heartbeat]) -> Finding:
    """Judge whether decisions stay within their stages' latency budgets, by the counts of living workers."""
    overruns: dict[str, Overrun] = {}
    for heartbeat in alive:
        for stage, overrun in heartbeat.overruns.items():
            overruns[stage] = with_overrun(overruns.get(stage), overrun, overrun.count)
    if not overruns:
        return Finding("budgets", Verdict.OK, "no decision of a living worker took longer than its budget")
    seen = ", ".join(_overrun_text(stage, overrun) for stage, overrun in sorted(overruns.items()))
    remedy = "more processors, or fewer workers on them; `swarm.over_budget` in the log tells when"
    return Finding("budgets", Verdict.WARN, f"over budget since their workers began: {seen}", remedy)


def judge_snapshots(alive: Sequence[Heartbeat]) -> Finding:
    """Judge whether the partitions' snapshots are saved: without them another worker needs long to take over."""
    unsaved = defaultdict[str, set[str]](set)
    for heartbeat in alive:
        for stage, names in heartbeat.unsaved.items():
            unsaved[stage].update(names)
    if not unsaved:
        return Finding("snapshots", Verdict.OK, "every latest one is saved")
    seen = ", ".join(f"{stage} {' '.join(sorted(names))}" for stage, names in sorted(unsaved.items()))
    remedy = "see `snapshot_not_saved` in the log of their worker: the bucket may be full, or not for this user"
    return Finding("snapshots", Verdict.WARN, f"the latest could not be saved: {seen}", remedy)


def _overrun_text(stage: str, overrun: Overrun) -> str:
    return f"{stage} {counted(overrun.count, 'time')} ({overrun.budget_ms:g} ms; of late up to {overrun.worst_ms:g} ms)"
