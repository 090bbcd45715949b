import os
from pathlib import Path

import pytest

from tests.each import each


def test_a_test_is_run_with_each_value_and_its_fixtures() -> None:
    seen = []

    @each("number", [1, 2, 3])
    def tested(number: int, fixture: str) -> None:
        seen.append((number, fixture))

    tested(fixture="x")
    assert seen == [(1, "x"), (2, "x"), (3, "x")]


def test_no_case_finds_what_another_has_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    @each("first", [1, 2])
    @each("second", [1, 2])
    def tested(first: int, second: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        seen.append(([*tmp_path.iterdir()], "LEFT_BY_A_CASE" in os.environ))
        (tmp_path / "left").touch()
        monkeypatch.setenv("LEFT_BY_A_CASE", "1")

    tested(tmp_path=tmp_path, monkeypatch=monkeypatch)
    assert seen == [([], False)] * 4


@pytest.mark.parametrize("names", ["left, right", ("left", "right")])
def test_a_case_may_be_of_several_values(names) -> None:
    seen = []

    @each(names, [(1, "a"), (2, "b")])
    def tested(right: str, left: int) -> None:
        seen.append((left, right))

    tested()
    assert seen == [(1, "a"), (2, "b")]


def test_each_case_of_one_list_is_run_with_each_of_another() -> None:
    seen = []

    @each("left", [1, 2])
    @each("right", "ab")
    def tested(left: int, right: str) -> None:
        seen.append((left, right))

    tested()
    assert seen == [(1, "a"), (1, "b"), (2, "a"), (2, "b")]


@pytest.mark.parametrize(
    ("named", "told"), [(repr, "number = 2"), (lambda number: f"n{number}", "number = n2"), (["a", "b", "c"], "b")]
)
def test_the_case_that_fails_is_named(named, told) -> None:
    @each("number", [1, 2, 3], named=named)
    def tested(number: int) -> None:
        assert number != 2

    with pytest.raises(AssertionError) as failed:
        tested()
    assert failed.value.__notes__ == [f"with {told}"]


def test_all_cases_are_run_and_all_that_fail_are_told() -> None:
    @each("number", [1, 2, 3])
    def tested(number: int) -> None:
        assert number == 2

    with pytest.raises(ExceptionGroup, match="2 of 3 cases failed") as failed:
        tested()
    assert [one.__notes__ for one in failed.value.exceptions] == [["with number = 1"], ["with number = 3"]]


def test_a_test_that_is_ended_says_with_what() -> None:
    @each("number", [1, 2, 3])
    def tested(number: int) -> None:
        if number == 2:
            pytest.fail("ended")

    with pytest.raises(pytest.fail.Exception) as failed:
        tested()
    assert failed.value.__notes__ == ["with number = 2"]


def test_what_would_show_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="no values of number"):
        each("number", [])


def test_a_name_that_the_test_does_not_take_is_refused() -> None:
    with pytest.raises(TypeError, match="takes no numbre"):

        @each("numbre", [1])
        def tested(number: int) -> None: ...


def test_a_case_with_too_few_values_is_refused() -> None:
    with pytest.raises(ValueError, match="shorter"):
        each("left, right", [(1, 2), (1,)])


@each("number", range(3))
def test_pytest_gives_it_its_fixtures_only(number: int, tmp_path) -> None:
    assert number in range(3)
    assert tmp_path.exists()
