import pytest

from tests.each import each


def test_a_test_is_run_with_each_value_and_its_fixtures(tmp_path) -> None:
    seen = []

    @each("number", [1, 2, 3])
    def tested(number: int, tmp_path) -> None:
        seen.append((number, tmp_path))

    tested(tmp_path=tmp_path)
    assert seen == [(1, tmp_path), (2, tmp_path), (3, tmp_path)]


def test_the_value_that_fails_is_named() -> None:
    @each("number", [1, 2, 3], named=lambda number: f"n{number}")
    def tested(number: int) -> None:
        assert number != 2

    with pytest.raises(AssertionError) as failed:
        tested()
    assert failed.value.__notes__ == ["with number = n2"]


def test_what_would_show_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="no values of number"):
        each("number", [])


@each("number", range(3))
def test_pytest_gives_it_its_fixtures_only(number: int, tmp_path) -> None:
    assert number in range(3)
    assert tmp_path.exists()
