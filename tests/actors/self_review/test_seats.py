"""Seats: what a swap takes it gives, and what entities are worth by them (S, "TRACE Seat Application")."""

import msgspec
import pytest
from hypothesis import given, settings

from actors.self_review.mind import Seat, worth_of
from actors.self_review.settings import SelfReviewSettings
from actors.self_review.tick import hashed
from schemas.actor import Emission
from schemas.vocabulary.loops import Part, TickObserved
from schemas.vocabulary.self_review import SeatAdded, SelfReviewTriggered
from tests.actors.self_review.builders import FELIX, citizen, mind, result, see
from tests.actors.self_review.test_score import ticks


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
    worth = {name: each.worth for name, each in mind(felix).seats.items()}
    assert worth == {"a": pytest.approx(0.7 + 0.3 * 0.2), "b": pytest.approx(0.7 - 0.3 * 0.7)}


def test_worth_is_part_of_later_scores():
    felix = citizen()
    before = see(felix, arousal=0.5, valence=-0.5)
    worth = mind(felix).seats
    assert worth["validator"].worth == worth["docs_sync"].worth > 0.7, "a good score is a good seat"
    for _ in range(3):
        see(felix)
    after = see(felix, arousal=0.9, valence=-0.9)
    # Less by what has faded over the ticks since.
    assert 0.7 < result(after).dimensions.outcome_prior <= worth["validator"].worth
    assert result(after).score > result(before).score


def test_the_entities_without_a_seat_for_longest_go_first():
    felix = citizen(SelfReviewSettings(seats=2))
    for number, name in enumerate(("old", "middle", "new")):
        chosen = (Part(id=name, energy=1.0, terms=("tests",)),)
        assert see(felix, arousal=0.3 * (number + 1), valence=-1.0, chosen=chosen)
        while mind(felix).armed:
            see(felix)
    assert set(mind(felix).seats) == {"middle", "new"}


def test_a_seat_says_what_it_was_said_on():
    felix = citizen()
    seats = [event for event in see(felix, arousal=0.5, valence=-0.5) if isinstance(event, SeatAdded)]
    assert seats
    assert all(seat.context and seat.scope == "local" for seat in seats)


@pytest.mark.parametrize(("after", "left"), [(0, 1.0), (256, 0.5), (512, 0.0), (5_000, 0.0)])
def test_a_seat_fades_over_ticks(after: int, left: float):
    settings = SelfReviewSettings()
    worth = worth_of(Seat(0.3, 100), 100 + after, None, settings)
    assert worth == pytest.approx(0.7 - 0.4 * left)


def test_a_seat_counts_where_its_context_comes_up_again_and_nowhere_else():
    settings = SelfReviewSettings()
    seat = Seat(0.3, 100, "session", hashed(("tap", "washer")))
    assert worth_of(seat, 100, frozenset(hashed(("tap", "drip"))), settings) == 0.3
    assert worth_of(seat, 100, frozenset(hashed(("bread",))), settings) == 0.7
    assert worth_of(Seat(0.3, 100), 100, frozenset(hashed(("bread",))), settings) == 0.3
