"""Large states in pieces: the same bytes as at once, and no piece that keeps others waiting for long."""

from hashlib import sha256
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.breaker.decider import BreakerState
from actors.breaker.machine import Machine
from actors.clock.schedule import Schedule
from schemas import state_pieces
from schemas.persistent import Derived, ExpiringMap, Map, encode_state, state_hash
from schemas.state_pieces import json_pieces, msgpack_pieces


class Index(Derived):
    """What a state can compute again."""


class Inner(msgspec.Struct, frozen=True):
    number: int = 0
    by: Map[str, int] = Map()
    index: Index = msgspec.field(default_factory=Index)


class State(msgspec.Struct, frozen=True):
    name: str = ""
    young: ExpiringMap[Inner] = ExpiringMap()
    by_number: Map[int, tuple[str, ...]] = Map()
    by_agent: Map[str, Inner] = Map()
    renamed: Map[str, float] = msgspec.field(name="called", default=Map())


def same(state: object) -> int:
    """Assert that a state's pieces are its encodings; return how many there are."""
    jsons, packs = list(json_pieces(state)), list(msgpack_pieces(state))
    assert sha256(b"".join(jsons)).hexdigest() == state_hash(state)
    assert b"".join(packs) == encode_state(state)
    return len(jsons)


KEYS = st.text(st.characters(exclude_categories=("Cs",)), max_size=3)
INNER = st.builds(Inner, st.integers(-5, 5), st.dictionaries(KEYS, st.integers(0, 9), max_size=9).map(Map))
STATES = st.builds(
    State,
    KEYS,
    st.dictionaries(KEYS, INNER, max_size=9).map(lambda entries: ExpiringMap(Map(entries))),
    st.dictionaries(st.integers(-300, 300), st.lists(KEYS, max_size=2).map(tuple), max_size=9).map(Map),
    st.dictionaries(KEYS, INNER, max_size=4).map(Map),
    st.dictionaries(KEYS, st.floats(allow_nan=False, allow_infinity=False), max_size=9).map(Map),
)


@given(STATES)
def test_the_pieces_of_a_state_are_what_it_is_encoded_as_at_once(state: State) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state_pieces, "PIECE", 2)
        same(state)


def test_real_states_come_in_pieces_of_some_entries_each() -> None:
    sessions = {f"agent\ncheck {number}": Machine(trust=number / 9_999) for number in range(3_000)}
    assert same(BreakerState(sessions=ExpiringMap(Map(sessions)))) > 3_000 // state_pieces.PIECE
    schedule = Schedule()
    for number in range(20_000):
        schedule = schedule.add((number * 7_919 % 100_003, f"id{number}", f"exchange{number}"))
    assert same(schedule) > 1


def test_a_large_map_of_an_agent_is_divided_too() -> None:
    large: Map[str, Any] = Map({f"key{number}": number for number in range(2_000)})
    assert same(State(by_agent=Map({"a": Inner(by=large), "b": Inner(), "c": Inner(by=large)}))) > 14
