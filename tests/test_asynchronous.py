"""A coroutine as a test: what it is given, and how it fails."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable

import pytest

from tests.asynchronous import run_by
from tests.each import each


def run(place: str, body: Callable[[int], Awaitable[object]]) -> None:
    async def main() -> None:
        await body(len(place))

    asyncio.run(main())


def test_a_coroutine_is_given_what_its_surroundings_are_and_its_own_arguments() -> None:
    found: list[object] = []

    @each("word", ["a", "b"])
    @run_by(run, "size", "place")
    async def test(size: int, word: str, fixture: object) -> None:
        found.append((size, word, fixture))

    assert list(inspect.signature(test).parameters) == ["place", "fixture"]
    test(place="here", fixture=7)
    assert found == [(4, "a", 7), (4, "b", 7)]


def test_a_coroutine_that_fails_is_a_test_that_fails() -> None:
    @run_by(run, "size", "place")
    async def test(size: int, place: str) -> None:
        assert size != len(place)

    with pytest.raises(AssertionError):
        test(place="here")


def test_a_coroutine_that_does_not_take_what_it_is_given_is_refused() -> None:
    with pytest.raises(TypeError, match="takes no size"):

        @run_by(run, "size")
        async def test() -> None:
            """Take nothing."""
