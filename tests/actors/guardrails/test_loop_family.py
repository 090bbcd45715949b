"""Names of loops, and what is kept of a family."""

from hypothesis import given
from hypothesis import strategies as st

from actors.guardrails.loop_family import (
    Family,
    LiftedLimit,
    Loop,
    best_of,
    in_force,
    loop_name,
    split_loop_id,
    with_judgement,
)
from tests.each import each


@each(
    ("loop_id", "family", "depth"),
    [
        ("loop_001", "loop_001", 0),
        ("loop_001_r1", "loop_001", 1),
        ("loop_001_r12", "loop_001", 12),
        ("loop_research_1", "loop_research_1", 0),  # its own root
        ("loop_001_r1_r2", "loop_001_r1", 2),  # exactly one ending is stripped
        ("loop_r1x", "loop_r1x", 0),
        ("loop_r", "loop_r", 0),
        ("_r1", "_r1", 0),
        ("loop_r1\n", "loop_r1\n", 0),
        ("two\nlines_r2", "two\nlines", 2),
        ("loop_r007", "loop", 7),
        ("loop_r0", "loop", 0),
        ("loop_r٣", "loop_r٣", 0),
        ("loop_r" + "9" * 100, "loop", 1_000_000),
    ],
)
def test_a_family_is_found_by_stripping_one_ending(loop_id: str, family: str, depth: int):
    assert split_loop_id(loop_id) == (family, depth)


@given(st.text(min_size=1, max_size=20), st.integers(1, 999_999))
def test_a_reruns_name_leads_back_to_its_family(family: str, depth: int):
    assert split_loop_id(loop_name(family, depth)) == (family, depth)


def test_the_first_loop_of_a_family_has_its_name():
    assert loop_name("loop", 0) == "loop"


def loop(name: str, alignment: float | None = None, drift: float | None = None) -> Loop:
    return Loop(name, "event", alignment, drift)


def test_the_best_has_the_most_alignment_over_drift_and_unscored_ones_come_last():
    assert best_of([loop("a", 0.5, 0.4), loop("b", 0.8, 0.6), loop("c")]).id == "b"
    assert best_of([loop("a"), loop("b", 0.0, 1.0)]).id == "b"
    assert best_of([loop("a", 0.3, 0.2), loop("b", 0.2, 0.1)]).id == "a"  # equal, once rounded
    assert best_of([loop("a", None, 0.1), loop("b")]).id == "a"


def test_a_family_forgets_its_oldest_loops_but_not_its_best():
    family = Family()
    for number in range(10):
        family = with_judgement(family, loop(f"loop_r{number}", 1.0 - number / 10, 0.0), number, 0.1, 4)
    assert [each.id for each in family.loops] == ["loop_r6", "loop_r7", "loop_r8", "loop_r9"]
    assert family.best is not None
    assert family.best.id == "loop_r0"
    assert (family.decided("loop_r9"), family.decided("loop_r0")) == ("event", "")


def test_an_override_holds_until_its_time():
    lifted = LiftedLimit("ann", 100)
    assert in_force(lifted, 99) is lifted
    assert in_force(lifted, 100) is None
    assert in_force(None, 0) is None
