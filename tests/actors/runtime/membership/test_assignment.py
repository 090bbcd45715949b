"""Who leads and who stands by: fair, stable, and the same for everybody who sees the same members."""

from collections import Counter
from math import ceil

from hypothesis import given
from hypothesis import strategies as st

from actors.registry import ACTORS
from actors.runtime.membership.assignment import assign, assign_partitions
from events.routes import partition_names
from schemas.actor import Actor, Scope
from schemas.subjects import Partitions
from tests.each import each

names = st.text("abcdefghij0123456789-", min_size=1, max_size=12)
members = st.lists(names, min_size=1, max_size=9, unique=True)
partitions = st.integers(1, 64).map(lambda count: tuple(f"{number:02d}" for number in range(count)))


@given(names, partitions, members)
def test_every_partition_has_a_leader_among_the_members(actor: str, parts: tuple[str, ...], who: list[str]) -> None:
    duties = assign(actor, parts, who)
    assert set(duties) == set(parts)
    assert {duty.leader for duty in duties.values()} <= set(who)


@given(names, partitions, members)
def test_nobody_leads_more_than_a_fair_share(actor: str, parts: tuple[str, ...], who: list[str]) -> None:
    load = Counter(duty.leader for duty in assign(actor, parts, who).values())
    assert max(load.values()) <= ceil(len(parts) / len(who))


@given(names, partitions, members)
def test_a_standby_is_another_member_than_the_leader(actor: str, parts: tuple[str, ...], who: list[str]) -> None:
    for duty in assign(actor, parts, who).values():
        if len(who) == 1:
            assert duty.standby is None
        else:
            assert duty.standby in set(who) - {duty.leader}


@given(names, partitions, members, st.randoms(use_true_random=False))
def test_the_order_in_which_members_are_listed_does_not_matter(
    actor: str, parts: tuple[str, ...], who: list[str], shuffler: object
) -> None:
    shuffled = list(who)
    shuffler.shuffle(shuffled)  # type: ignore[attr-defined]  # a random.Random
    assert assign(actor, parts, shuffled) == assign(actor, parts, who)


def test_without_members_nobody_has_a_duty() -> None:
    assert assign("reflex", ("00", "01"), ()) == {}


@each("count", range(1, 9))
def test_a_new_member_moves_its_share_of_the_partitions_and_few_others(count: int) -> None:
    """On average over many sets of members: a fair share, and at most twice that again by the smaller caps."""
    parts = tuple(f"{number:02d}" for number in range(16))
    moved = 0
    for world in range(100):
        who = [f"{world}-{number}" for number in range(count)]
        before, after = assign("reflex", parts, who), assign("reflex", parts, [*who, f"{world}-new"])
        moved += sum(before[part].leader != after[part].leader for part in parts)
    assert moved / 100 <= 3 * len(parts) / (count + 1)


@given(names, partitions, members)
def test_when_a_leader_goes_its_partitions_are_led_by_who_stood_by_unless_that_one_is_full(
    actor: str, parts: tuple[str, ...], who: list[str]
) -> None:
    if len(who) == 1:
        return
    before = assign(actor, parts, who)
    gone, left = who[0], who[1:]
    after = assign(actor, parts, left)
    load = Counter(duty.leader for duty in after.values())
    for part in parts:
        if before[part].leader == gone and after[part].leader != before[part].standby:
            assert load[before[part].standby or ""] == ceil(len(parts) / len(left))


def test_different_actors_spread_their_first_partitions_over_different_members() -> None:
    who = ["a", "b", "c", "d"]
    first = {assign(f"actor-{number}", ("00",), who)["00"].leader for number in range(40)}
    assert first == set(who)


@given(members)
def test_a_sessions_actors_are_led_in_one_process(who: list[str]) -> None:
    of_sessions = [actor for actor in ACTORS.values() if actor.scope is Scope.SESSION]
    parts = partition_names(of_sessions[0], Partitions())
    assert len({str(assign_partitions(actor, parts, who)) for actor in of_sessions}) == 1


@given(names, partitions, st.lists(names, min_size=2, max_size=2, unique=True))
def test_of_two_members_the_other_one_leads_what_is_spread_backwards(
    actor: str, parts: tuple[str, ...], who: list[str]
) -> None:
    forwards, backwards = assign(actor, parts, who), assign(actor, parts, who, backwards=True)
    if len(parts) % 2 == 0:
        assert all(forwards[part].leader != backwards[part].leader for part in parts)
        assert all(forwards[part].leader == backwards[part].standby for part in parts)


APART = [actor for actor in ACTORS.values() if actor.led_apart_from]


@each("actor", APART, named=lambda actor: actor.name)
def test_an_actor_is_led_apart_from_one_that_is_spread_by_its_own_name(actor: Actor[object]) -> None:
    other = ACTORS[actor.led_apart_from]
    assert actor.scope is other.scope is not Scope.SESSION
    assert not other.led_apart_from


@each("agents", [1, 3, 20])
def test_two_processes_share_what_actors_decide_evenly_however_few_agents_there_are(agents: int) -> None:
    """By the microseconds that ``neuraxis bench path`` has found an exchange to take in each actor."""
    took_us = {
        "appraisal": 2300,
        "memory": 1525,
        "self_review": 1306,
        "reflex": 572,
        "intuition": 563,
        "responder": 292,
        "router": 250,
        "swarm": 100,
        "breaker": 94,
        "monitor": 87,
        "arbiter": 85,
        "coherence": 81,
        "guardrails": 57,
    }
    partitions, busiest = Partitions(), 0.0
    for world in range(50):
        who = [f"{world}-a", f"{world}-b"]
        load = dict.fromkeys(who, 0.0)
        tokens = [partitions.agent_token(f"agent-{world}-{number}") for number in range(agents)]
        for name, took in took_us.items():
            actor = ACTORS[name]
            parts = partition_names(actor, partitions)
            for part, duty in assign_partitions(actor, parts, who).items():
                share = tokens.count(part) / agents if actor.scope is Scope.AGENT else 1 / len(parts)
                load[duty.leader] += took * share
        busiest += max(load.values()) / sum(load.values()) / 50
    assert busiest < 0.54
