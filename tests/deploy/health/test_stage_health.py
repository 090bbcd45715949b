"""How each stage is served at a moment."""

from actors.gateway.http.records.set_overview import StageHealth
from actors.runtime.membership.heartbeat import Heartbeat
from deploy.health.stage_health import stage_health
from schemas.availability import Overrun
from schemas.subjects import Partitions

PARTITIONS = Partitions(agents=1, sessions=2)


def healths(*alive: Heartbeat) -> dict[str, StageHealth]:
    return {each.stage: each for each in stage_health(alive, PARTITIONS, ("reflex", "clock"))}


def test_needed_stages_are_told_of_and_others_where_somebody_hosts_them() -> None:
    found = healths(Heartbeat(("act",), recovering=("act",)))
    assert list(found) == ["act", "clock", "reflex"]
    assert (found["act"].needed, found["act"].lack, found["act"].served) == (False, "recovering", 0)
    assert (found["reflex"].needed, found["reflex"].lack, found["reflex"].partitions) == (True, "no_owner", 2)


def test_partitions_slow_decisions_and_lag_of_several_workers_are_added() -> None:
    over = [Overrun(budget_ms=5.0, count=count, worst_ms=worst) for count, worst in ((2, 9.0), (3, 7.0))]
    found = healths(
        Heartbeat(
            ("reflex",),
            serves={"reflex": ("00",), "clock": ("all",)},
            overruns={"reflex": over[0]},
            waiting={"reflex": 4},
        ),
        Heartbeat(("reflex",), serves={"reflex": ("01",)}, overruns={"reflex": over[1]}, waiting={"reflex": 3}),
    )
    reflex = found["reflex"]
    assert (reflex.served, reflex.lack, reflex.slow, reflex.worst_ms) == (2, None, 5, 9.0)
    assert (found["clock"].served, found["clock"].slow) == (1, 0)
    assert (reflex.waiting, found["clock"].waiting) == (7, 0)


def test_what_does_not_move_is_told_as_stalled() -> None:
    found = healths(Heartbeat(("reflex",), serves={"reflex": ("00",)}, stalled={"reflex": ("01",)}))
    assert (found["reflex"].served, found["reflex"].lack) == (1, "stalled")
