"""A wrong value is answered with what its place takes."""

from typing import Annotated, Literal

import msgspec
import pytest

from schemas.intake.error_messages import error_line
from tests.each import each


class Inner(msgspec.Struct):
    role: Literal["user", "tool"]


class Outer(msgspec.Struct):
    mode: Literal["fast", "slow"] = "fast"
    count: Literal[1, 3] = 1
    on: bool = True
    name: Annotated[str, msgspec.Meta(pattern="^[a-z]+$", description="a name of small letters")] = "a"
    plain: Annotated[str, msgspec.Meta(pattern="^x$")] = "x"
    parts: tuple[Inner, ...] | None = None
    shares: dict[Literal["a", "b"], float] = {}


def complaint(value: dict[str, object]) -> str:
    with pytest.raises(msgspec.ValidationError) as wrong:
        msgspec.convert(value, Outer)
    return error_line(Outer, str(wrong.value))


@each(
    ("value", "told"),
    [
        ({"mode": "x"}, "mode: Invalid enum value 'x': there are fast, slow"),
        ({"count": 2}, "count: Invalid enum value 2: there are 1, 3"),
        ({"on": "yes"}, "on: Expected `bool`, got `str`: write true or false"),
        ({"name": "A"}, "name: write a name of small letters"),
        ({"plain": "A"}, "plain: Expected `str` matching regex '^x$'"),
        ({"parts": [{"role": "x"}]}, "parts[0].role: Invalid enum value 'x': there are tool, user"),
        ({"shares": {"c": 1.0}}, "shares: Invalid enum value 'c': there are a, b"),
        ({"mode": 5}, "mode: Expected `str`, got `int`: there are fast, slow"),
        ({"parts": 5}, "parts: Expected `array | null`, got `int`"),
    ],
)
def test_a_wrong_value_is_answered_with_what_its_place_takes(value: dict[str, object], told: str) -> None:
    assert complaint(value) == told
