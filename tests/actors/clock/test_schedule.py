"""The schedule against a sorted list."""

from hypothesis import given
from hypothesis import strategies as st

from actors.clock.schedule import SPAN_LENGTH, DueEntry, Schedule
from schemas.persistent import decode_state, encode_state


def place(due: int, cause: str = "cause") -> DueEntry:
    return (due, cause, "exchange")


places = st.builds(place, st.integers(0, 40), st.sampled_from("abcdefghij"))


def filled(dues: list[int]) -> Schedule:
    schedule = Schedule()
    for number, due in enumerate(dues):
        schedule = schedule.add(place(due, f"{number:06d}"))
    return schedule


def drained(schedule: Schedule) -> list[DueEntry]:
    order = []
    while (first := schedule.first()) is not None:
        order.append(first)
        schedule = schedule.remove(first)
    assert schedule == Schedule(), "an empty schedule keeps nothing"
    return order


def assert_well_formed(schedule: Schedule) -> None:
    assert list(schedule.starts) == sorted(set(schedule.starts))
    assert set(schedule.starts) == set(schedule.spans)
    assert all(schedule.spans[start] for start in schedule.starts)
    assert all(start <= schedule.spans[start][0][0] for start in schedule.starts)
    everything = [each for start in schedule.starts for each in schedule.spans[start]]
    assert everything == sorted(everything)


@given(st.lists(st.tuples(st.booleans(), places), max_size=400))
def test_it_holds_what_a_sorted_list_holds(steps: list[tuple[bool, DueEntry]]):
    schedule, model = Schedule(), set[DueEntry]()
    for adds, each in steps:
        if adds and each not in model:
            schedule = schedule.add(each)
            model.add(each)
        elif not adds:
            schedule = schedule.remove(each)
            model.discard(each)
        assert schedule.first() == min(model, default=None)
        assert len(schedule) == len(model)
    assert_well_formed(schedule)
    assert drained(schedule) == sorted(model)


@given(st.lists(st.integers(0, 10_000), min_size=3 * SPAN_LENGTH, max_size=6 * SPAN_LENGTH, unique=True))
def test_many_spans_stay_ordered_and_small(dues: list[int]):
    schedule = filled(dues)
    assert_well_formed(schedule)
    assert len(schedule.starts) > 1
    assert [each[0] for each in drained(schedule)] == sorted(dues)


def test_due_times_in_order_fill_their_spans():
    schedule = filled(list(range(10 * SPAN_LENGTH)))
    assert [len(schedule.spans[start]) for start in schedule.starts] == [SPAN_LENGTH] * 10


def test_due_times_in_reverse_fill_their_spans():
    schedule = filled(list(range(10 * SPAN_LENGTH, 0, -1)))
    assert_well_formed(schedule)
    assert [len(schedule.spans[start]) for start in schedule.starts] == [SPAN_LENGTH] * 10


def test_due_times_between_others_split_a_full_span():
    schedule = filled([*range(0, 2 * SPAN_LENGTH, 2), 1])
    assert_well_formed(schedule)
    assert len(schedule.starts) == 2
    assert [each[0] for each in drained(schedule)] == sorted([*range(0, 2 * SPAN_LENGTH, 2), 1])


def test_places_before_a_start_whose_own_place_is_gone_stay_in_order():
    schedule = filled([1000]).add(place(10, "x")).remove((1000, "000000", "exchange"))
    for due in range(20, 20 + 2 * SPAN_LENGTH):
        schedule = schedule.add(place(due))
    assert_well_formed(schedule)


def test_equal_due_times_share_a_span_whatever_their_number():
    schedule = filled([5] * (3 * SPAN_LENGTH) + [4, 6])
    assert_well_formed(schedule)
    assert [each[0] for each in drained(schedule)] == [4] + [5] * (3 * SPAN_LENGTH) + [6]


def test_removing_what_is_absent_changes_nothing():
    schedule = filled([1, 3])
    assert schedule.remove(place(2)) is schedule
    assert schedule.remove(place(9)) is schedule
    assert Schedule().remove(place(1)) == Schedule()


def test_an_older_schedule_is_not_changed_by_a_newer():
    older = filled([1, 2, 3])
    before = encode_state(older)
    older.remove((1, "000000", "exchange"))
    older.add(place(0))
    assert encode_state(older) == before


@given(st.lists(st.integers(0, 500), max_size=5 * SPAN_LENGTH))
def test_a_snapshot_holds_the_same_schedule(dues: list[int]):
    schedule = filled(dues)
    assert decode_state(encode_state(schedule), Schedule) == schedule
