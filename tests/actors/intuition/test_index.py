"""The index answers what comparing with every entry would answer, after any changes, with either engine."""

from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.intuition.index import NO_ENTRY, Entry, Index, interpreted, similarity
from actors.intuition.index.index_value import COMPACTED_FROM, COMPILED_FROM, compiled_engine
from actors.intuition.index.query import COMPARED, UNLIMITED, Answer, Query, plan_reading
from actors.intuition.index.store import MOST_CAPACITY, Store

ENGINES = [interpreted, *([compiled_engine()] if compiled_engine() else [])]
each_engine = pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.__name__.rpartition(".")[2])


class Way(NamedTuple):
    """An engine, and the limits by which the interpreted one chooses how to go about a search."""

    engine: ModuleType
    limits: dict[str, int]


WAYS = {
    "by_loops": Way(interpreted, {"FEW": 10**6}),
    "by_arrays": Way(interpreted, {"FEW": -1, "AT_ONCE": 0}),
    "by_arrays_short_lists_at_once": Way(interpreted, {"FEW": -1}),
}
if len(ENGINES) > 1:
    WAYS["compiled"] = Way(ENGINES[1], {"FEW": interpreted.FEW})
each_way = pytest.mark.parametrize("way", WAYS.values(), ids=list(WAYS))
without_compiler = pytest.mark.skipif(compiled_engine() is None, reason="numba is not installed (extra `fast`)")

SHINGLES = [3, 2**32, 2**32 + 1, 2**63, 2**63 + 1, 2**64 - 1, *range(11, 40)]
"""Few, so that entries share some; some at the same home, some behind the last one."""

shingle_sets = st.sets(st.sampled_from(SHINGLES), min_size=1, max_size=12)
situations = st.sampled_from([1, 2**64 - 1])


class Step(NamedTuple):
    """An entry is added, or, without shingles, one of those that count is retired."""

    shingles: frozenset[int] | None
    situation: int
    harmful: bool
    which: int


class Question(NamedTuple):
    shingles: set[int]
    situation: int
    most: int
    floor: float
    motif_floor: float
    after: int = 0
    """How many changes before it is asked."""


steps = st.lists(
    st.builds(Step, st.none() | shingle_sets.map(frozenset), situations, st.booleans(), st.integers(0, 99)), max_size=40
)
questions = st.lists(
    st.builds(
        Question,
        shingle_sets,
        situations,
        st.sampled_from([0, 1, 3, 50]),
        st.sampled_from([0.05, 0.3, 0.5, 0.7, 1.0]),
        st.sampled_from([0.0, 0.3, 0.7, 1.0]),
        st.integers(0, 99),
    ),
    min_size=1,
    max_size=5,
)


def sorted_array(shingles: Any) -> np.ndarray:
    return np.array(sorted(shingles), np.uint64)


def entry(number: int, step: Step) -> Entry:
    assert step.shingles is not None
    return Entry(number, f"e-{number}", sorted_array(step.shingles).tobytes(), step.situation, step.harmful)


Told = tuple[list[tuple[str, float]], tuple[str, float] | None]


def compared(entries: Mapping[int, Entry], asked: Question) -> Told:
    """Compare with every entry."""
    rows = []
    for number, other in entries.items():
        shingles = set(np.frombuffer(other.signature, np.uint64).tolist())
        shared = len(shingles & asked.shingles)
        if shared:
            overlap, size = shared + (other.situation == asked.situation), len(shingles) + 1
            near = similarity(overlap, len(asked.shingles) + 1, size)
            rows.append((-overlap * overlap / size, number, other, near))
    rows.sort(key=lambda row: row[:2])
    motifs = [(other.name, near) for *_, other, near in rows if other.harmful and near >= asked.motif_floor]
    similar = [(other.name, near) for *_, other, near in rows if near >= asked.floor][: asked.most]
    return similar, motifs[0] if motifs else None


def answered(engine: ModuleType, store: Store, asked: Question, budget: int = UNLIMITED) -> Told:
    return told(store, asked, searched(engine, store, asked, budget))


def searched(engine: ModuleType, store: Store, asked: Question, budget: int) -> Answer:
    query = Query(sorted_array(asked.shingles), asked.situation, asked.most, asked.floor, asked.motif_floor, budget)
    answer: Answer = engine.search(store, query)
    return answer


def told(store: Store, asked: Question, answer: Answer) -> Told:
    def named(place: int, overlap: int) -> tuple[str, float]:
        return store.names[place], similarity(overlap, len(asked.shingles) + 1, store.size_of(place))

    similar = [named(*hit) for hit in answer.similar]
    motif = named(*answer.motif) if answer.motif else None
    # The engines' floors are a rounding error lower, the holder's are not.
    return [each for each in similar if each[1] >= asked.floor], motif if motif and motif[
        1
    ] >= asked.motif_floor else None


@each_way
@given(built=steps, changes=steps, asked=questions)
@settings(max_examples=80, deadline=None)
def test_r3_2_every_answer_is_that_of_comparing_with_every_entry_after_any_changes(
    way: Way, built: Sequence[Step], changes: Sequence[Step], asked: Sequence[Question]
) -> None:
    entries = {number: entry(number, step) for number, step in enumerate(built) if step.shingles}
    store = Store(list(entries.values()))
    with mock.patch.multiple(interpreted, **way.limits):
        for number, step in enumerate([*changes, None], len(built)):
            for question in asked:
                if question.after % (len(changes) + 1) == number - len(built):
                    assert answered(way.engine, store, question) == compared(entries, question)
            change(store, entries, number, step)


def change(store: Store, entries: dict[int, Entry], number: int, step: Step | None) -> None:
    """Add an entry or retire one, in the store and among the entries; either engine may write what the other reads."""
    if step is None:
        return
    engine = ENGINES[step.which % len(ENGINES)]
    if step.shingles:
        entries[number] = entry(number, step)
        engine.add(store, entries[number])
    elif entries:
        retired = sorted(entries)[step.which % len(entries)]
        del entries[retired]
        engine.retire(store, retired)


@given(built=steps, changes=steps, asked=questions, budget=st.integers(0, 40 * COMPARED))
@settings(max_examples=150, deadline=None)
def test_where_the_allowance_does_not_suffice_the_answer_is_exact_among_the_entries_it_suffices_for(
    built: Sequence[Step], changes: Sequence[Step], asked: Sequence[Question], budget: int
) -> None:
    entries = {number: entry(number, step) for number, step in enumerate(built) if step.shingles}
    store = Store(list(entries.values()))
    for number, step in enumerate(changes, len(built)):
        change(store, entries, number, step)
    for question in asked:
        reached, work, cut = within(entries, question, budget)
        for way in WAYS.values():
            with mock.patch.multiple(interpreted, **way.limits):
                answer = searched(way.engine, store, question, budget)
            assert (answer.work, answer.cut) == (work, cut)
            assert told(store, question, answer) == compared(reached, question)


def within(entries: Mapping[int, Entry], asked: Question, budget: int) -> tuple[dict[int, Entry], int, bool]:
    """Return the entries that an allowance lets a search see, what it counts for, and whether it is cut."""
    holding = [
        [number for number in sorted(entries) if shingle in np.frombuffer(entries[number].signature, np.uint64)]
        for shingle in sorted(asked.shingles)
    ]
    lists = sorted(filter(None, holding), key=len)
    query = Query(sorted_array(asked.shingles), 1, asked.most, asked.floor, asked.motif_floor)
    whole, latest, work, cut = plan_reading([*map(len, lists)], min(query.least, query.motif_least), budget)
    assert work <= budget
    seen = {number for numbers in lists[:whole] for number in numbers}
    seen |= {*lists[whole][-latest:]} if latest else set()
    return {number: entries[number] for number in seen}, work, cut


@given(built=steps, changes=steps)
@settings(max_examples=80, deadline=None)
def test_a_store_that_was_changed_counts_and_bounds_like_one_that_was_built_of_what_is_left(
    built: Sequence[Step], changes: Sequence[Step]
) -> None:
    entries = {number: entry(number, step) for number, step in enumerate(built) if step.shingles}
    store = Store(list(entries.values()))
    for number, step in enumerate(changes, len(built)):
        change(store, entries, number, step)
    anew = Store(list(entries.values()))
    shingles = sorted_array(SHINGLES)
    for engine in ENGINES:
        assert engine.smallest(store, shingles).tolist() == engine.smallest(anew, shingles).tolist()
    for shingle in SHINGLES:
        one = Question({shingle}, 1, 0, 1.0, 0.0)
        assert searched(interpreted, store, one, UNLIMITED).work == searched(interpreted, anew, one, UNLIMITED).work


def many(count: int) -> list[Entry]:
    """Return entries that share some shingles with few, and two with all."""
    draw = np.random.default_rng(7)
    words = draw.integers(1, 2**63, 400, dtype=np.uint64)
    return [
        Entry(
            number,
            f"e-{number}",
            np.unique(np.concatenate((words[:2], draw.choice(words, draw.integers(1, 20))))).tobytes(),
            1,
            bool(draw.random() < 0.5),
        )
        for number in range(count)
    ]


@each_engine
def test_lists_longer_than_the_largest_block_are_read_whole(engine: ModuleType) -> None:
    entries = many(3 * MOST_CAPACITY)
    store = Store(entries[:100])
    for each in entries[100:]:
        engine.add(store, each)
    by_number = {each.number: each for each in entries}
    for each in entries[::500]:
        asked = Question(set(np.frombuffer(each.signature, np.uint64).tolist()), 1, 5, 0.3, 0.0)
        assert answered(engine, store, asked) == compared(by_number, asked)


@each_engine
def test_r3_2_the_table_grows_under_additions_and_loses_nothing(engine: ModuleType) -> None:
    draw = np.random.default_rng(3)
    store = Store()
    entries = [
        Entry(n, f"e-{n}", np.sort(draw.integers(1, 2**64, 8, np.uint64)).tobytes(), 1, True) for n in range(900)
    ]
    for each in entries:
        engine.add(store, each)
    assert store.table.used == 8 * 900
    for each in entries:
        hashes = np.frombuffer(each.signature, np.uint64)
        assert (engine.smallest(store, hashes) == 8).all()
        answer = engine.search(store, Query(hashes, 1, 0, 1.0, 1.0))
        assert answer.motif == (each.number, 9)


@each_engine
def test_shingles_crowding_at_the_end_of_the_table_make_it_grow(engine: ModuleType) -> None:
    store = Store()
    crowd = [2**64 - 1 - number for number in range(200)]
    engine.add(store, Entry(1, "e", sorted_array(crowd).tobytes(), 1, True))
    assert engine.smallest(store, np.array([*crowd, 5], np.uint64)).tolist() == [200] * 200 + [NO_ENTRY]
    assert store.table.keys[-1] == 0


@each_engine
def test_a_search_leaves_no_mark(engine: ModuleType) -> None:
    store = Store(many(300))
    before = store.packed_counts.copy()
    for each in many(300)[::30]:
        hashes = np.frombuffer(each.signature, np.uint64)
        for floor in (0.05, 0.7):
            for budget in (0, 50 * COMPARED, UNLIMITED):
                engine.search(store, Query(hashes, 1, 3, floor, floor, budget))
    assert np.array_equal(store.packed_counts, before)


@without_compiler
def test_both_engines_give_the_same_answers_on_a_large_set() -> None:
    entries = many(COMPILED_FROM + 500)
    store = Store(entries)
    for each in entries[::50]:
        asked = Question(set(np.frombuffer(each.signature, np.uint64)[1:].tolist()), 2, 5, 0.3, 0.0)
        first, second = (answered(engine, store, asked) for engine in ENGINES)
        assert first == second


def test_r3_1_and_r7_compaction_in_place_of_a_rebuild_changes_no_answer() -> None:
    entries = {each.number: each for each in many(2 * COMPACTED_FROM + 10)}
    index = Index(Store(list(entries.values())))
    sizes = []
    for number in range(COMPACTED_FROM + 20):
        index = index.without_entry(number)
        del entries[number]
        if number % 100 == 0 or number > COMPACTED_FROM - 5:
            asked = Question(set(np.frombuffer(entries[number + 600].signature, np.uint64).tolist()), 1, 5, 0.3, 0.0)
            found = index.nearest(lambda: list(entries.values()), Query(sorted_array(asked.shingles), 1, 5, 0.3, 0.0))
            assert (list(found.similar), found.motif) == compared(entries, asked)
            sizes.append(index.nbytes)
    assert sizes[-1] < 0.7 * sizes[0]


def test_an_entry_that_another_thread_adds_while_the_store_is_built_is_not_in_the_value_before() -> None:
    entries, later = many(3), []

    class Built(Index):
        def __setattr__(self, name: str, value: Any) -> None:
            super().__setattr__(name, value)
            if name == "_store" and value is not None and not later:
                later.append(self.with_entry(entries[2]))

    index = Built()
    index.build(lambda: entries[:2])
    assert index.build(lambda: entries[:2]).count == 2


def test_an_empty_set_and_an_empty_text_have_nothing_near() -> None:
    some = Index(Store(many(3)))
    for index, hashes in ((Index(), sorted_array([5])), (some, sorted_array([]))):
        found = index.nearest(list, Query(hashes, 1, 5, 0.3, 0.0))
        assert (found.similar, found.motif) == ((), None)
