"""What operators import is in force from the next input on, for every partition alike, and said once by each."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.reflex import ACTOR
from actors.reflex.decider import State
from actors.reflex.imported_patterns import (
    MAX_CHARACTERS,
    MAX_DEPTH,
    MAX_IMPORTS,
    MAX_SIGNATURES,
    Imports,
    checked_import,
    whole_library,
    with_event,
)
from actors.reflex.library import InvalidLibrary, library_of
from schemas.event import Event
from schemas.persistent import decode_state, encode_state
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.patterns import PatternSet, PatternsImported, PatternsWithdrawn
from schemas.vocabulary.reflex import ReflexBlocked, ReflexLibraryChanged, ReflexPassed
from tests.actors.reflex.judging import listed, threat
from tests.actors.scenario import Partition
from tests.each import each

VAULT = InputReceived(text="open the vault")


def imported(name: str, *sets: PatternSet) -> PatternsImported:
    return PatternsImported(name=name, sets=sets, by="ann")


HOUSE = imported("house", threat("own", "open the vault"))


def said(events: list[Event]) -> list[type[Event]]:
    return [type(event) for event in events]


def test_an_import_leads_to_nothing_by_itself() -> None:
    assert Partition(ACTOR).when(HOUSE) == []


def test_an_import_blocks_from_the_next_input_on() -> None:
    partition = Partition(ACTOR)
    assert said(partition.when(VAULT)) == [ReflexPassed]
    partition.hear(HOUSE)
    changed, blocked = partition.when(VAULT)
    assert isinstance(blocked, ReflexBlocked)
    assert (blocked.pattern, blocked.signature) == ("house/own", "open the vault")
    assert isinstance(changed, ReflexLibraryChanged)
    assert (changed.profile, changed.imports) == ("standard", ("house",))
    assert changed.signatures == len(list(library_of("standard").signatures())) + 1


def test_the_change_is_said_once() -> None:
    partition = Partition(ACTOR, HOUSE, VAULT)
    assert said(partition.when(VAULT)) == [ReflexBlocked]


def test_the_same_import_again_changes_nothing() -> None:
    partition = Partition(ACTOR, HOUSE, VAULT)
    before = partition.state
    partition.hear(HOUSE)
    assert partition.state == before
    assert said(partition.when(VAULT)) == [ReflexBlocked]


def test_an_import_of_the_same_name_takes_the_place_of_the_earlier() -> None:
    partition = Partition(ACTOR, HOUSE, imported("other", threat("b", "b")), imported("house", threat("own", "a")))
    assert partition.state.imports.names() == ("house", "other")
    assert said(partition.when(VAULT)) == [ReflexLibraryChanged, ReflexPassed]


def test_what_is_withdrawn_guards_nothing() -> None:
    partition = Partition(ACTOR, HOUSE, VAULT, PatternsWithdrawn(name="house"))
    changed, passed = partition.when(VAULT)
    assert isinstance(changed, ReflexLibraryChanged)
    assert changed.imports == ()
    assert passed == ReflexPassed()


def test_withdrawing_what_is_not_there_changes_nothing() -> None:
    partition = Partition(ACTOR)
    before = partition.state
    partition.hear(PatternsWithdrawn(name="house"))
    assert partition.state is before


def test_the_profile_comes_before_what_is_imported() -> None:
    again = imported("again", threat("own", "do anything now"))
    _, event = Partition(ACTOR, again).when(InputReceived(text="do anything now"))
    assert isinstance(event, ReflexBlocked)
    assert event.pattern == "jailbreak"
    assert {match.pattern for match in listed(event)} >= {"jailbreak", "again/own"}


@each(
    "useless",
    [
        imported("bad", threat("own", "\u200b")),
        imported("bad", threat("own", "")),
        imported("bad", threat("own", "a", "a")),
        imported("bad", threat("same", "a"), threat("same", "b")),
        imported("bad", threat("own", "x" * (MAX_CHARACTERS + 1))),
        imported("bad", threat("own", *("a" * letters for letters in range(1, MAX_DEPTH + 2)))),
    ],
    named=["invisible", "empty", "listed twice", "two sets of a name", "too long", "too deep"],
)
def test_content_that_cannot_be_used_leaves_the_library_as_it_is(useless: PatternsImported) -> None:
    partition = Partition(ACTOR, HOUSE, useless)
    assert partition.state.imports.names() == ("house",)
    with pytest.raises(InvalidLibrary):
        checked_import(partition.state.imports, useless)


def test_no_more_imports_are_held_than_the_limit() -> None:
    imports = Imports()
    for number in range(MAX_IMPORTS):
        imports = checked_import(imports, imported(f"import {number}", threat("own", f"a {number} b")))
    with pytest.raises(InvalidLibrary, match="65 imports, of at most 64: withdraw some first"):
        checked_import(imports, imported("one more", threat("own", "a")))
    assert checked_import(imports, imported("import 7", threat("own", "b"))) != imports


def test_no_more_signatures_are_held_than_the_limit() -> None:
    half = threat("own", *(f"phrase {number}" for number in range(MAX_SIGNATURES // 2 + 1)))
    imports = checked_import(Imports(), imported("first", half))
    assert with_event(imports, imported("second", half)) == imports


def ending_in_one_another(first: int, last: int) -> PatternSet:
    return threat("own", *("a" * letters for letters in range(first, last + 1)))


def test_signatures_that_end_in_one_another_are_refused_beyond_the_limit_and_named() -> None:
    with pytest.raises(InvalidLibrary) as refused:
        checked_import(Imports(), imported("deep", ending_in_one_another(1, MAX_DEPTH + 1)))
    assert "more than 32 signatures end in one another (deep/own: 'a', deep/own: 'aa', " in str(refused.value)
    assert f"… deep/own: '{'a' * 33}')" in str(refused.value)
    assert "keep 32 of them at most" in str(refused.value)


def test_signatures_that_end_in_one_another_are_counted_over_all_imports() -> None:
    imports = checked_import(Imports(), imported("first", ending_in_one_another(1, MAX_DEPTH)))
    with pytest.raises(InvalidLibrary, match="first/own: 'a'"):
        checked_import(imports, imported("second", threat("own", "a a")))


@each("alike", ["la", "L A", "|4", "í a"])
def test_what_ends_in_a_signature_but_for_white_space_case_or_digits_counts_too(alike: str) -> None:
    chain = ["1 " * letters + "a" for letters in range(MAX_DEPTH)]
    checked_import(Imports(), imported("deep", threat("own", *chain)))
    with pytest.raises(InvalidLibrary, match="end in one another"):
        checked_import(Imports(), imported("deep", threat("own", *chain, alike)))


def test_signatures_that_only_begin_alike_or_hold_one_another_may_be_many() -> None:
    checked_import(Imports(), imported("wide", threat("own", *("b" + "a" * letters + "b" for letters in range(100)))))


def test_a_minus_before_a_confidence_of_zero_makes_no_difference() -> None:
    plus, minus = (
        imported("house", PatternSet(name="own", action="FLAG", confidence=zero, signatures=("a",)))
        for zero in (0.0, -0.0)
    )
    with_event.cache_clear()  # equal events share an entry: let each be worked out
    one = with_event(Imports(), minus)
    with_event.cache_clear()
    other = with_event(Imports(), plus)
    assert one.fingerprint == other.fingerprint
    assert encode_state(State(imports=one)) == encode_state(State(imports=other))


def test_equal_imports_make_one_library() -> None:
    one, other = (with_event(Imports(), imported("house", threat("own", "phrase"))) for _ in range(2))
    assert whole_library("seed", one) is whole_library("seed", other)


def test_a_snapshot_carries_the_imports() -> None:
    partition = Partition(ACTOR, HOUSE)
    restored = decode_state(encode_state(partition.state), State)
    assert restored == partition.state
    assert encode_state(restored) == encode_state(partition.state)


actions: Any = st.one_of(
    st.builds(
        imported, st.sampled_from("abc"), st.builds(threat, st.just("own"), st.sampled_from(["x y", "open the vault"]))
    ),
    st.builds(PatternsWithdrawn, name=st.sampled_from("abc")),
    st.just(VAULT),
)


@settings(deadline=None, max_examples=40)
@given(st.lists(actions, max_size=12))
def test_an_input_is_judged_by_all_that_is_in_force_and_by_nothing_else(history: list[Event]) -> None:
    partition = Partition(ACTOR)
    in_force: dict[str, PatternsImported] = {}
    for event in history:
        decided = partition.when(event)
        if isinstance(event, PatternsImported):
            in_force[event.name] = event
        elif isinstance(event, PatternsWithdrawn):
            in_force.pop(event.name, None)
        else:
            wanted = {f"{name}/own" for name, each in in_force.items() if "vault" in str(each.sets)}
            assert {match.pattern for match in listed(decided[-1])} == wanted
