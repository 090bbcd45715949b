"""Seats: what a swap takes it gives, and what entities are worth by them (S, "TRACE Seat Application")."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.self_review.agent_state import AgentState, Seat, with_seat, worth_of
from actors.self_review.settings import SelfReviewSettings
from actors.self_review.tick import hash_names
from schemas.actor import Emission
from schemas.vocabulary.loops import ObservedEntity, TickObserved
from schemas.vocabulary.operator import ForgetOrdered
from schemas.vocabulary.self_review import SeatAdded, SelfReviewTriggered
from tests.actors.scenario import Address, Partition
from tests.actors.self_review.builders import FELIX, citizen, mind, result, see
from tests.actors.self_review.test_score import ticks
from tests.each import each

SETTINGS = SelfReviewSettings()


def seat(entity: str, value: float) -> SeatAdded:
    return SeatAdded(citizen="felix", tick=1, entity=entity, seat_type="metacog_quality", value=value)


@given(ticks)
@settings(max_examples=60, deadline=None)
def test_what_a_swap_takes_from_one_entity_it_gives_to_another(event: TickObserved):
    shock = msgspec.structs.replace(event, arousal=1.0, valence=-1.0)
    led_to = citizen().when(shock, FELIX)
    assert isinstance(led_to[0], SelfReviewTriggered)
    seats = [each for each in led_to if isinstance(each, SeatAdded)]
    assert sum(each.value for each in seats if each.seat_type != "metacog_quality") == 0.0
    chosen = {each.id for each in event.chosen}
    assert {each.entity for each in seats if each.seat_type == "metacog_quality"} == chosen
    applied = result(led_to).seats_applied
    assert {*applied.negative} <= chosen
    assert chosen.isdisjoint(applied.positive)


def test_an_entity_s_worth_moves_towards_what_its_seat_says():
    felix = citizen()
    felix.fold(felix.own(Emission(seat("a", 0.2), agent="felix")), felix.own(Emission(seat("b", -0.8), agent="felix")))
    worth = {name: each.worth for name, (each,) in mind(felix).seats.items()}
    assert worth == {"a": pytest.approx(0.7 + 0.3 * 0.2), "b": pytest.approx(0.7 - 0.3 * 0.7)}


def test_worth_is_part_of_later_scores():
    felix = citizen()
    before = see(felix, arousal=0.5, valence=-0.5)
    worth = {entity: seat.worth for entity, (seat,) in mind(felix).seats.items()}
    assert worth["validator"] == worth["docs_sync"] > 0.7, "a good score is a good seat"
    for _ in range(3):
        see(felix)
    after = see(felix, arousal=0.9, valence=-0.9)
    # Less by what has faded over the ticks since.
    assert 0.7 < result(after).dimensions.outcome_prior <= worth["validator"]
    assert result(after).score > result(before).score


def test_the_entities_without_a_seat_for_longest_go_first():
    felix = citizen(SelfReviewSettings(seats=2))
    for number, name in enumerate(("old", "middle", "new")):
        chosen = (ObservedEntity(id=name, energy=1.0, terms=("tests",)),)
        assert see(felix, arousal=0.3 * (number + 1), valence=-1.0, chosen=chosen)
        while mind(felix).armed:
            see(felix)
    assert set(mind(felix).seats) == {"middle", "new"}


def test_a_seat_says_what_it_was_said_on():
    felix = citizen()
    seats = [event for event in see(felix, arousal=0.5, valence=-0.5) if isinstance(event, SeatAdded)]
    assert seats
    assert all(seat.context and seat.scope == "local" for seat in seats)


@each(("after", "left"), [(0, 1.0), (256, 0.5), (512, 0.0), (5_000, 0.0)])
def test_a_seat_fades_over_ticks(after: int, left: float):
    settings = SelfReviewSettings()
    worth = worth_of((Seat(0.3, 100),), 100 + after, None, settings)
    assert worth == pytest.approx(0.7 - 0.4 * left)


def test_a_seat_counts_where_its_context_comes_up_again_and_nowhere_else():
    settings = SelfReviewSettings()
    seat = Seat(0.3, 100, "session", hash_names(("tap", "washer")))
    assert worth_of((seat,), 100, frozenset(hash_names(("tap", "drip"))), settings) == 0.3
    assert worth_of((seat,), 100, frozenset(hash_names(("bread",))), settings) == 0.7
    assert worth_of((Seat(0.3, 100),), 100, frozenset(hash_names(("bread",))), settings) == 0.3


def said(felix: Partition, entity: str, value: float, *context: str, session: str = "") -> None:
    """Let a review say something of an entity, on some terms."""
    event = msgspec.structs.replace(seat(entity, value), context=context)
    felix.fold(felix.own(Emission(event, agent="felix", session=session)))


def worth(felix: Partition, entity: str, *stimulus: str) -> float:
    """Return what an entity is worth where these terms come up."""
    return worth_of(mind(felix).seats.get(entity, ()), mind(felix).ticks, frozenset(hash_names(stimulus)), SETTINGS)


def test_what_is_said_on_one_matter_moves_nothing_on_another():
    felix = citizen()
    said(felix, "a", -0.7, "tap", "washer")
    said(felix, "a", 0.3, "bread")
    assert worth(felix, "a", "tap") == pytest.approx(0.7 + 0.3 * (0.0 - 0.7))
    assert worth(felix, "a", "bread") == pytest.approx(0.7 + 0.3 * 0.3)
    assert worth(felix, "a", "moon") == 0.7
    said(felix, "a", -0.7, "washer", "drip")
    assert worth(felix, "a", "drip") == pytest.approx(0.49 * 0.7), "one word on a matter goes on from the one before"
    assert worth(felix, "a", "bread") == pytest.approx(0.79)


def test_a_seat_without_terms_is_about_everything_but_what_another_was_said_on_later():
    felix = citizen()
    said(felix, "a", -0.7)
    said(felix, "a", 0.3, "bread")
    assert worth(felix, "a", "moon") == pytest.approx(0.49)
    assert worth(felix, "a", "bread") == pytest.approx(0.79)


words = st.lists(st.sampled_from("abcdefgh"), max_size=3, unique=True)


@given(st.lists(st.tuples(words, st.floats(-1, 1), st.integers(0, 40)), max_size=12), words)
@settings(max_examples=80, deadline=None)
def test_whatever_was_said_an_entity_is_worth_what_it_began_with_where_nothing_of_it_comes_up(
    seats: list[tuple[list[str], float, int]], stimulus: list[str]
):
    quick = SelfReviewSettings(fade_ticks=30)
    one = AgentState()
    for context, value, ticks_between in seats:
        one = with_seat(one, msgspec.structs.replace(seat("a", value), context=tuple(context)), "", quick)
        one = msgspec.structs.replace(one, ticks=one.ticks + ticks_between)
    known, about = one.seats.get("a", ()), frozenset(hash_names(stimulus))
    assert len(known) <= 4
    now = worth_of(known, one.ticks, about, quick)
    assert 0.0 <= now <= 1.0
    if all(each.context and about.isdisjoint(each.context) for each in known):
        assert now == 0.7
    assert worth_of(known, one.ticks + 30, about, quick) == 0.7


def test_a_forgotten_session_or_fact_takes_the_seats_that_hold_its_words():
    felix = citizen()
    said(felix, "a", -0.7, "tap", session="noon")
    said(felix, "a", -0.7, "bread", session="night")
    said(felix, "b", -0.7)
    felix.when(ForgetOrdered(what="session", by="ann", why="asked to"), Address("felix", "noon", ""))
    assert (worth(felix, "a", "tap"), worth(felix, "a", "bread")) == (0.7, pytest.approx(0.49))
    felix.when(ForgetOrdered(what="fact", key="name", by="ann", why="asked to"), FELIX)
    assert worth(felix, "a", "bread") == 0.7
    assert worth(felix, "b", "bread") == pytest.approx(0.49), "it holds no words"
