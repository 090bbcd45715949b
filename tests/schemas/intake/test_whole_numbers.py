"""Whole numbers that others write: those that fit are read, and all else is none."""

from schemas.intake.whole_numbers import MOST_DIGITS, read_whole_number
from tests.each import each


@each(("text", "number"), [("0", 0), ("007", 7), ("9" * MOST_DIGITS, 10**MOST_DIGITS - 1)])
def test_digits_are_a_number(text: str, number: int) -> None:
    assert read_whole_number(text) == number


@each("text", ["", " 1", "-1", "+1", "1.0", "1e3", "²", "١", "9" * (MOST_DIGITS + 1), "1" * 5_000])
def test_all_else_is_none(text: str) -> None:
    assert read_whole_number(text) is None
