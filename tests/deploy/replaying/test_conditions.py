"""The grammar of conditions: what is parsed means what it says, and what is not is refused at a place."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from events.replay.states.conditions import MISSING, BadCondition, Condition, at_path, condition_of, path_of
from events.replay.states.diffing import path_text
from schemas.persistent import Map
from tests.each import each

NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,5}", fullmatch=True)
PATHS = st.lists(st.text(max_size=4) | st.integers(0, 99), max_size=3).flatmap(
    lambda rest: NAMES.map(lambda first: (first, *rest))
)
LITERALS = st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=4) | st.lists(st.integers(), max_size=2)


class Kept(msgspec.Struct, frozen=True):
    trust: float = 0.5
    seen: tuple[int, ...] = (7, 8)
    by: Map[str, int] = Map()


@given(PATHS, st.sampled_from(["==", "!="]), LITERALS)
def test_what_is_written_is_read_back(path: tuple[str | int, ...], operator: str, literal: Any) -> None:
    text = f"{path_text(path)} {operator} {msgspec.json.encode(literal).decode()}"
    assert condition_of(text) == Condition(path, operator, literal)


@given(st.text(max_size=20))
def test_no_text_does_anything_but_parse_or_be_refused(text: str) -> None:
    try:
        told = path_text(condition_of(text).path)
    except BadCondition as bad:
        told = str(bad).partition(": expected ")[2]
    assert told


@each(
    ("text", "message"),
    [
        ("", "character 1: expected a path"),
        ("trust", "character 6: expected one of == !="),
        ("trust = 1", "character 6: expected one of == !="),
        ("trust < high", "character 9: expected a JSON value"),
        ("trust == " + "[" * 100_000, "character 10: expected a JSON value"),
        ("trust < [1]", "character 9: expected a number or a text"),
        ("mode in 1", "character 9: expected a JSON list"),
        ("mode exists 1", "character 13: expected the end"),
        ("__import__('os')", "character 11: expected one of"),
    ],
)
def test_an_error_names_its_place(text: str, message: str) -> None:
    with pytest.raises(BadCondition, match=message.replace("(", r"\(")):
        condition_of(text)


@each(
    ("text", "value", "holds"),
    [
        ("x < 0.5", 0.4, True),
        ("x < 0.5", 0.5, False),
        ("x <= 0.5", 0.5, True),
        ("x > 1", 2, True),
        ("x >= 2", 2, True),
        ('x >= "b"', "a", False),
        ("x < 1", "a", False),
        ("x < 1", False, False),
        ("x == 1", True, False),
        ("x == null", None, True),
        ('x in ["a", "b"]', "b", True),
        ("x in [0]", False, False),
        ("x exists", None, True),
        ("x exists", MISSING, False),
        ("x == null", MISSING, False),
        ("x != 1", MISSING, True),
    ],
)
def test_a_condition_holds_of_what_it_says(text: str, value: Any, holds: bool) -> None:
    assert condition_of(text).holds(value) is holds


@each(
    ("path", "value"),
    [("trust", 0.5), ("seen[1]", 8), ("seen[2]", MISSING), ('by["a b"]', 3), ("by", {"a b": 3}), ("trust.x", MISSING)],
)
def test_a_path_leads_into_structs_maps_and_lists(path: str, value: Any) -> None:
    found = at_path(Kept(by=Map({"a b": 3})), path_of(path))
    assert found is value if value is MISSING else found == value
