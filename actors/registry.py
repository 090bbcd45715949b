"""The actors there are, found in the packages below ``actors``: adding one touches nothing here.

An actor's package holds a module ``decider``. The others (entry points, effectors, the projector) are not imported:
they need the broker's client and more, which a replay of a file does not.
"""

from importlib import import_module
from types import ModuleType
from typing import Any

import actors
from actors.actor_names import UnknownActor, actor_packages, unknown_actor
from schemas.actor import Actor
from schemas.catalogue import CATALOGUE
from schemas.event import Event, topic_of

__all__ = ["ACTORS", "InvalidActor", "UnknownActor", "actor_named", "check_actor", "load_actors"]


class InvalidActor(ValueError):
    """An actor package contradicts the catalogue or its own name: a mistake in the code, found at load."""

    code = "invalid_actor"


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
    for module in actor_packages(package):
        actor = getattr(import_module(f"{package.__name__}.{module}"), "ACTOR", None)
        if actor is not None:
            found[module] = check_actor(module, actor)
    return found


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
    raise unknown_actor(name, ACTORS)
