"""The actors there are, found in the packages below ``actors``: adding one touches nothing here.

An actor's package holds a module ``decider``. The others (entry points, effectors, the projector) are not imported:
they need the broker's client and more, which a replay of a file does not.
"""

import pkgutil
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import actors
from schemas.actor import Actor
from schemas.catalogue import CATALOGUE
from schemas.event import Event, topic_of
from schemas.intake.nearest_name import nearest_or_all

_DECIDER = "decider.py"
"""What the packages of actors hold, and no other."""


class InvalidActor(ValueError):
    """An actor package contradicts the catalogue or its own name: a mistake in the code, found at load."""

    code = "invalid_actor"


class UnknownActor(LookupError):
    """There is no actor of that name."""

    code = "unknown_actor"


def check_actor(package: str, actor: Actor[Any]) -> Actor[Any]:
    """Return the actor of a package if it agrees with the catalogue; raises InvalidActor, saying where it does not."""
    if actor.name != package:
        raise InvalidActor(f"actors/{package} calls its actor {actor.name!r}: name it {package!r}")
    for event in actor.consumes:
        if not _listed(event):
            raise InvalidActor(f"{package} consumes {event.__name__}, which the catalogue does not list: add its entry")
    if len(set(actor.consumes)) != len(actor.consumes):
        raise InvalidActor(f"{package} consumes an event twice: list each once")
    own_events = {entry.event for entry in CATALOGUE.values() if entry.owner == package}
    if own_events.intersection(actor.consumes):
        raise InvalidActor(f"{package} consumes its own events: they are in its view anyway")
    return actor


def load_actors(package: ModuleType = actors) -> dict[str, Actor[Any]]:
    """Import the packages with a decider below ``package`` and return their actors, by name, sorted.

    Raises:
        InvalidActor: see ``check_actor``.
    """
    found: dict[str, Actor[Any]] = {}
    for module in _packages(package):
        actor = getattr(import_module(f"{package.__name__}.{module}"), "ACTOR", None)
        if actor is not None:
            found[module] = check_actor(module, actor)
    return found


def _packages(package: ModuleType) -> Iterable[str]:
    folders = [Path(each) for each in package.__path__]
    names = (found.name for found in pkgutil.iter_modules(package.__path__) if found.ispkg)
    return sorted(name for name in names if any((folder / name / _DECIDER).is_file() for folder in folders))


def _listed(event: type[Event]) -> bool:
    entry = CATALOGUE.get(topic_of(event))
    return entry is not None and entry.event is event


ACTORS: dict[str, Actor[Any]] = load_actors()
"""Name -> actor, sorted by name."""


def actor_named(name: str) -> Actor[Any]:
    """Return the actor ``name``; raises UnknownActor, which names the nearest one there is."""
    actor = ACTORS.get(name)
    if actor is not None:
        return actor
    raise UnknownActor(f"there is no actor {name!r}: {nearest_or_all(name, ACTORS)}")
