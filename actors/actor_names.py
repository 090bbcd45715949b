"""The names of the actors there are, without importing them, for a gateway, which only checks names."""

import pkgutil
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from types import ModuleType

import actors
from schemas.intake.nearest_name import nearest_or_all

_DECIDER = "decider.py"
"""A file that every actor's package has, and no other package."""


class UnknownActor(LookupError):
    """There is no actor of that name."""

    code = "unknown_actor"


def actor_packages(package: ModuleType = actors) -> list[str]:
    """Return the names of the packages with a decider below ``package``, sorted."""
    folders = [Path(each) for each in package.__path__]
    names = (found.name for found in pkgutil.iter_modules(package.__path__) if found.ispkg)
    return sorted(name for name in names if any((folder / name / _DECIDER).is_file() for folder in folders))


def check_actor_name(name: str) -> None:
    """Raise UnknownActor, which names the nearest actor, if there is no actor ``name``."""
    if name not in _actor_names():
        raise unknown_actor(name, _actor_names())


def unknown_actor(name: str, known: Iterable[str]) -> UnknownActor:
    """Return the error for an actor ``name`` that is none of the ``known`` ones."""
    return UnknownActor(f"there is no actor {name!r}: {nearest_or_all(name, known)}")


@cache
def _actor_names() -> tuple[str, ...]:
    return tuple(actor_packages())
