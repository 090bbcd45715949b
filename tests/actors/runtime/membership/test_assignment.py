"""Who leads and who stands by: fair, stable, and the same for everybody who sees the same members."""

from collections import Counter
from math import ceil

from hypothesis import given
from hypothesis import strategies as st

from actors.runtime.membership.assignment import assign
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
