"""A wrong value is answered with what its place takes."""

from typing import Annotated, Literal

import msgspec
import pytest

from schemas.choices import with_choices


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
    return with_choices(Outer, str(wrong.value))


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ({"mode": "x"}, "Invalid enum value 'x': there are fast, slow - at `$.mode`"),
        ({"count": 2}, "Invalid enum value 2: there are 1, 3 - at `$.count`"),
        ({"on": "yes"}, "Expected `bool`, got `str`: write true or false - at `$.on`"),
        ({"name": "A"}, "write a name of small letters - at `$.name`"),
        ({"plain": "A"}, "Expected `str` matching regex '^x$' - at `$.plain`"),
        ({"parts": [{"role": "x"}]}, "Invalid enum value 'x': there are tool, user - at `$.parts[0].role`"),
        ({"shares": {"c": 1.0}}, "Invalid enum value 'c': there are a, b - at `key` in `$.shares`"),
        ({"mode": 5}, "Expected `str`, got `int`: there are fast, slow - at `$.mode`"),
        ({"parts": 5}, "Expected `array | null`, got `int` - at `$.parts`"),
    ],
)
def test_a_wrong_value_is_answered_with_what_its_place_takes(value: dict[str, object], told: str) -> None:
    assert complaint(value) == told
