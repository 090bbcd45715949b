"""One test over many cases: one line in a report, and every case that failed by its name."""

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

Named = Callable[[Any], str] | Sequence[str]
"""How cases are called: by a function of a value, or one by one."""


def each(
    parameters: str | Sequence[str], cases: Iterable[Any], named: Named = repr
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test for each of ``cases``, as ``pytest.mark.parametrize`` would, but as one test: all cases are run.

    For cases that only compute: ten thousand lines in a report show no more than a test each, and each line costs a
    set-up, a report and its way between processes. All cases have the same fixtures, but for a ``tmp_path`` and a
    ``monkeypatch`` of their own; what needs a broker of its own stays ``pytest.mark.parametrize``.

    Raises:
        ValueError: there are no cases, so that the test would show nothing.
    """
    names = [name.strip() for name in parameters.split(",")] if isinstance(parameters, str) else list(parameters)
    listed = [dict(zip(names, [case] if len(names) == 1 else case, strict=True)) for case in cases]
    if not listed:
        raise ValueError(f"no values of {parameters} to test with")

    def over_all(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def tested(*self: object, **fixtures: object) -> None:
            failures: list[Exception] = []
            for number, case in enumerate(listed):
                try:
                    with _of_its_own(number, fixtures) as given:
                        test(*self, **given, **case)
                except Exception as failed:
                    failed.add_note(f"with {_told(number, case, named)}")
                    failures.append(failed)
                except BaseException as ended:  # what ends a test, such as pytest.fail
                    ended.add_note(f"with {_told(number, case, named)}")
                    raise
            if len(failures) == 1:
                raise failures[0]
            if failures:
                raise ExceptionGroup(f"{len(failures)} of {len(listed)} cases failed", failures)

        taken = inspect.signature(test)
        if unknown := set(names) - set(taken.parameters):
            raise TypeError(f"{test.__name__} takes no {', '.join(sorted(unknown))}")
        rest = [each for name, each in taken.parameters.items() if name not in names]
        tested.__signature__ = taken.replace(parameters=rest)  # type: ignore[attr-defined]  # what pytest reads
        return tested

    return over_all


@contextlib.contextmanager
def _of_its_own(number: int, fixtures: dict[str, object]) -> Iterator[dict[str, object]]:
    """Give a case the fixtures that it changes anew, so that none finds what another has left."""
    with pytest.MonkeyPatch.context() as patch:
        own: dict[str, object] = {"monkeypatch": patch} if "monkeypatch" in fixtures else {}
        if isinstance(shared := fixtures.get("tmp_path"), Path):
            own["tmp_path"] = folder = shared / f"case-{number}"
            folder.mkdir()
        yield fixtures | own


def _told(number: int, case: dict[str, Any], named: Named) -> str:
    if not callable(named):
        return named[number]
    return ", ".join(f"{name} = {named(value)}" for name, value in case.items())
