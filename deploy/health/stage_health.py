"""How each stage is served at this moment, by the heartbeats of living workers. Pure."""

from collections.abc import Iterator, Sequence

from actors.gateway.http.records.set_overview import StageHealth
from actors.runtime.membership.availability import by_stage, unserved_partitions, with_overrun
from actors.runtime.membership.heartbeat import Heartbeat
from schemas.availability import Overrun
from schemas.input_path import names_of, scopes
from schemas.subjects import Partitions


def stage_health(alive: Sequence[Heartbeat], partitions: Partitions, needed: Sequence[str]) -> Iterator[StageHealth]:
    """Yield how each stage is served: the needed stages, and of the others those that somebody hosts.

    Args:
        alive: The heartbeats of living processes.
        partitions: The stream's partition counts.
        needed: The stages that this set needs.
    """
    slow: dict[str, Overrun] = {}
    for heartbeat in alive:
        for stage, reported in heartbeat.overruns.items():
            slow[stage] = with_overrun(slow.get(stage), reported, reported.count)
    found = by_stage(unserved_partitions(alive, partitions), tuple(scopes()))
    for stage, scope in scopes().items():
        lack, away = found.get(stage, (None, ()))
        if lack == "no_owner" and stage not in needed:
            continue
        overrun = slow.get(stage)
        count = len(names_of(scope, partitions))
        yield StageHealth(
            stage=stage,
            needed=stage in needed,
            served=count - len(away),
            partitions=count,
            lack=lack,
            slow=overrun.count if overrun else 0,
            worst_ms=overrun.worst_ms if overrun else 0.0,
            waiting=sum(heartbeat.waiting.get(stage, 0) for heartbeat in alive),
        )
