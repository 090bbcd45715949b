"""Differences of states: what they are made of, and that they lead from the one to the other."""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from events.replay.states.diffing import Change, changes, path_text

SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.floats(allow_nan=False) | st.text(max_size=3)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("ab", max_size=2), inner, max_size=4),
    max_leaves=12,
)


def applied(value: Any, found: Sequence[Change]) -> Any:
    """Return a copy of a value with the changes made, in order."""
    holder = {"": deepcopy(value)}
    for change in found:
        inner: Any = holder
        *outer, last = "", *change.path
        for step in outer:
            inner = inner[step]
        if change.op == "remove":
            del inner[last]
        elif change.op == "add" and isinstance(inner, list):
            inner.insert(int(last), deepcopy(change.after))
        else:
            inner[last] = deepcopy(change.after)
    return holder[""]


@given(VALUES, VALUES)
def test_the_changes_lead_from_one_value_to_the_other(before: Any, after: Any) -> None:
    found = tuple(changes(before, after))
    reached = applied(before, found)
    assert reached == after
    assert not tuple(changes(reached, after))


@given(VALUES)
def test_a_value_differs_in_nothing_from_itself(value: Any) -> None:
    assert not tuple(changes(value, value))


def test_what_was_added_removed_and_replaced_is_told_apart() -> None:
    before, after = {"trust": 0.5, "old": 1, "seen": [1, 2]}, {"trust": 0.4, "seen": [1], "new": None}
    assert list(changes(before, after)) == [
        Change(op="replace", path=("trust",), before=0.5, after=0.4),
        Change(op="remove", path=("old",), before=1),
        Change(op="remove", path=("seen", 1), before=2),
        Change(op="add", path=("new",), after=None),
    ]


def test_true_is_not_one() -> None:
    assert list(changes({"open": True}, {"open": 1})) == [Change(op="replace", path=("open",), before=True, after=1)]


def test_a_path_reads_as_a_state_prints_it() -> None:
    assert path_text(("sessions", "a b", "seen", 0)) == 'sessions["a b"].seen[0]'
    assert path_text(()) == "(all)"
