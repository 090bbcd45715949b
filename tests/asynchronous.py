"""Tests that are written as coroutines, and run by what makes their surroundings."""

import functools
import inspect
from collections.abc import Callable, Coroutine
from typing import Any

Test = Callable[..., Coroutine[Any, Any, object]]


def run_by(run: Callable[..., object], given: str, *fixtures: str) -> Callable[[Test], Callable[..., None]]:
    """Return a decorator that has a coroutine tested by ``run(*fixtures, body)``, which calls ``body`` with one value.

    The coroutine takes that value as its argument ``given``. Its other arguments are fixtures and parameters, as of any
    test, among them those of ``run`` if it wants them, too. Decorators that give parameters stand above this one.
    """

    def decorate(test: Test) -> Callable[..., None]:
        taken = inspect.signature(test)
        if given not in taken.parameters:
            raise TypeError(f"{test.__name__} takes no {given}")

        @functools.wraps(test)
        def tested(**values: object) -> None:
            wanted = {name: value for name, value in values.items() if name in taken.parameters}
            run(*(values[name] for name in fixtures), lambda value: test(**{given: value}, **wanted))

        of_run = [
            inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD)
            for name in fixtures
            if name not in taken.parameters
        ]
        rest = [each for name, each in taken.parameters.items() if name != given]
        tested.__signature__ = taken.replace(parameters=[*of_run, *rest])  # type: ignore[attr-defined]  # pytest's
        return tested

    return decorate
