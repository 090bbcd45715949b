"""Who serves which stage, and since when nobody does, from heartbeats."""

import msgspec

from actors.runtime.membership.availability import (
    BLIND_AFTER_S,
    WINDOW_S,
    AvailabilityWatch,
    by_stage,
    unserved_partitions,
)
from actors.runtime.membership.heartbeat import Heartbeat, heartbeat_of
from schemas.availability import Overrun, UnservedPartition
from schemas.input_path import names_of, scopes
from schemas.subjects import Partitions
from tests.each import each

PARTITIONS = Partitions(agents=1, sessions=2)
ALL = tuple((stage, name) for stage, scope in scopes().items() for name in names_of(scope, PARTITIONS))


def serving(*without: tuple[str, str], actors: tuple[str, ...] = (), **more: object) -> bytes:
    """The heartbeat of a process that serves every partition but some."""
    serves: dict[str, tuple[str, ...]] = {}
    for stage, name in ALL:
        if (stage, name) not in without:
            serves[stage] = (*serves.get(stage, ()), name)
    return msgspec.json.encode(Heartbeat(actors, serves=serves, **more))  # type: ignore[arg-type]


def absent(watch: AvailabilityWatch, now: float) -> dict[tuple[str, str], UnservedPartition]:
    attendance = watch.availability(now)
    assert attendance is not None
    return {(each.stage, each.partition): each for each in attendance.absent}


def test_a_stage_that_nobody_hosts_has_no_owner_in_any_partition() -> None:
    found = unserved_partitions([Heartbeat(("reflex",), serves={"reflex": ("00", "01")})], PARTITIONS)
    assert by_stage(found, ("reflex", "arbiter")) == {"arbiter": ("no_owner", ("00", "01"))}


def test_one_partition_alone_can_be_without_an_owner() -> None:
    presence = Heartbeat(("arbiter",), serves={"arbiter": ("00",)})
    assert by_stage(unserved_partitions([presence], PARTITIONS), ("arbiter",)) == {"arbiter": ("recovering", ("01",))}


def test_a_stalled_partition_is_not_served_though_it_has_an_owner() -> None:
    presence = Heartbeat(("arbiter",), serves={"arbiter": ("00",)}, stalled={"arbiter": ("01",)})
    assert by_stage(unserved_partitions([presence], PARTITIONS), ("arbiter",)) == {"arbiter": ("stalled", ("01",))}


def test_absence_counts_from_when_a_stage_was_last_seen_served() -> None:
    watch, place = AvailabilityWatch(PARTITIONS), ("arbiter", "01")
    watch.check({"w": serving()}, 10.0)
    watch.check({"w": serving(place)}, 11.0)
    assert absent(watch, 11.0)[place].for_ms == 1_000
    watch.check({"w": serving(place)}, 13.0)
    assert absent(watch, 13.0) == {
        place: UnservedPartition(stage="arbiter", partition="01", lack="no_owner", for_ms=3_000, seen=True)
    }
    watch.check({"w": serving()}, 13.5)
    assert absent(watch, 13.5) == {}


def test_a_stage_that_was_never_served_is_away_since_somebody_looks() -> None:
    watch, place = AvailabilityWatch(PARTITIONS), ("arbiter", "01")
    watch.check({"w": serving(place)}, 10.0)
    watch.check({"w": serving(place)}, 12.0)
    assert (absent(watch, 12.0)[place].for_ms, absent(watch, 12.0)[place].seen) == (2_000, False)


@each("why", ["the list was away", "whoever looks was held up"])
def test_time_in_which_nobody_looked_makes_nobody_absent(why: str) -> None:
    watch, place = AvailabilityWatch(PARTITIONS), ("arbiter", "01")
    watch.check({"w": serving()}, 10.0)
    if why == "the list was away":
        watch.note_blind()
        assert watch.availability(10.5) is None, "no verdict without sight"
    watch.check({"w": serving(place)}, 10.0 + BLIND_AFTER_S + 30)
    assert absent(watch, 10.0 + BLIND_AFTER_S + 30)[place].for_ms == 0


def test_a_heartbeat_of_another_release_counts_for_nothing_and_breaks_nothing() -> None:
    assert heartbeat_of(b"\xff") is None
    watch = AvailabilityWatch(PARTITIONS)
    watch.check({"w": b'{"actors": 7}', "v": serving()}, 1.0)
    assert absent(watch, 1.0) == {}


@each("other", [{"overruns": [7]}, {"metrics": "host:1"}, {"waiting": {"reflex": "many"}, "pace": 3}])
def test_what_another_release_says_in_another_form_is_left_out_and_the_rest_counts(other: dict[str, object]) -> None:
    ours = msgspec.json.decode(serving())
    found = heartbeat_of(msgspec.json.encode(ours | other))
    assert found == msgspec.json.decode(serving(), type=Heartbeat)
    watch = AvailabilityWatch(PARTITIONS)
    watch.check({"v": msgspec.json.encode(ours | other)}, 1.0)
    watch.check({"v": msgspec.json.encode(ours | other)}, 2.0)
    assert absent(watch, 2.0) == {}


@each(
    ("said", "able"),
    [
        ({"cut_off": False}, {"memory", "clock"}),
        ({"cut_off": True, "serves": {"clock": ("all",)}}, set()),
        ({"cut_off": False, "stalled": {"memory": ("00",)}, "serves": {"clock": ("all",)}}, {"clock"}),
        ({"cut_off": False, "declines": ("clock",), "recovering": ("memory",)}, set()),
        ({}, set()),
        ({"serves": {"clock": ("all",)}}, {"memory", "clock"}),
    ],
)
def test_who_reads_the_log_is_able_to_run_its_actors_but_those_that_do_not_advance(
    said: dict[str, object], able: set[str]
) -> None:
    """An older release does not say whether it is cut off: what it serves speaks for it."""
    found = heartbeat_of(msgspec.json.encode({"actors": ("memory", "clock"), **said}))
    assert found is not None
    assert found.able() == able


def overran(count: int, worst_ms: float = 12.0) -> dict[str, object]:
    return {"overruns": {"reflex": Overrun(budget_ms=10.0, count=count, worst_ms=worst_ms)}}


def test_decisions_over_budget_are_added_up_over_workers_and_handed_out_once_a_window() -> None:
    watch = AvailabilityWatch(PARTITIONS)
    watch.check({"a": serving(**overran(5))}, 0.0)  # counted before anybody looked: told by somebody else
    watch.check({"a": serving(**overran(7)), "b": serving(**overran(1, 30.0))}, 1.0)
    early = watch.availability(1.0)
    assert early is not None
    assert early.overran is None
    for now in range(2, int(WINDOW_S)):
        watch.check({"a": serving(**overran(7)), "b": serving(**overran(1, 30.0))}, float(now))
    watch.check({"a": serving(**overran(8)), "b": serving(**overran(1, 30.0))}, WINDOW_S)
    closed = watch.availability(WINDOW_S)
    assert closed is not None
    assert closed.overran == {"reflex": Overrun(budget_ms=10.0, count=4, worst_ms=30.0)}
    watch.note_recorded(closed, WINDOW_S)
    watch.check({"a": serving(**overran(8)), "b": serving(**overran(1, 30.0))}, WINDOW_S + 1)
    after = watch.availability(WINDOW_S + 1)
    assert after is not None
    assert (after.overran, after.quiet_ms) == (None, {"reflex": 1_000})
