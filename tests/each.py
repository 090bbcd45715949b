"""One test over all that the product lists: one case in a report, and the value that failed by its name."""

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


def each(
    parameter: str, values: Iterable[T], named: Callable[[T], str] = str
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test for each of ``values``, given to it as ``parameter``; the first failure names its value.

    For lists that grow with the product, such as the catalogue: a case of its own for each would be thousands that show
    one thing. Cases that were thought of one by one stay ``pytest.mark.parametrize``.

    Raises:
        ValueError: there are no values, so that the test would show nothing.
    """
    listed = list(values)
    if not listed:
        raise ValueError(f"no values of {parameter} to test with")

    def over_all(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def tested(**fixtures: object) -> None:
            for value in listed:
                try:
                    test(**fixtures, **{parameter: value})
                except BaseException as failed:
                    failed.add_note(f"with {parameter} = {named(value)}")
                    raise

        taken = inspect.signature(test)
        rest = [each for name, each in taken.parameters.items() if name != parameter]
        tested.__signature__ = taken.replace(parameters=rest)  # type: ignore[attr-defined]  # what pytest reads
        return tested

    return over_all
