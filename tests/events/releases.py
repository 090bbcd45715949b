"""Later releases, made in this process: other fields and versions of events, other deciders."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from actors.registry import ACTORS
from schemas.actor import Actor, Emission, Message
from schemas.catalogue import CATALOGUE, entry_of
from schemas.event import Event, topic_of
from schemas.versions import UPCASTERS, Upcaster

Fields = list[tuple[str, Any] | tuple[str, Any, Any]]


class LaterRelease:
    """Changes the catalogue and the actors of this process, until the test ends; ``patch`` is what takes them back."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.patch = patch

    def actor(self, actor: Actor[Any]) -> None:
        """Have an actor decide and fold as this one does."""
        self.patch.setitem(ACTORS, actor.name, actor)

    def event(self, event: type[Event], fields: Fields, said: Upcaster) -> type[Event]:
        """Give an event more or other fields; its actor's bodies become what ``said`` makes of them."""
        entry = entry_of(event)
        later = msgspec.defstruct(
            event.__name__,
            fields,
            bases=(event,),
            frozen=True,
            kw_only=True,
            tag=topic_of(event),
            namespace={"__doc__": "."},
        )
        sample = msgspec.convert(said(msgspec.to_builtins(entry.sample)), later)
        self.patch.setitem(CATALOGUE, entry.topic, msgspec.structs.replace(entry, sample=sample))
        actor = ACTORS[entry.owner]
        self.actor(replace(actor, decide=_saying(actor.decide, event, lambda body: msgspec.convert(said(body), later))))
        return later

    def version(self, event: type[Event], step: Upcaster, fields: Fields = ()) -> None:  # type: ignore[assignment]
        """Give an event's bodies another meaning, as the next version, which is what its actor says from now on."""
        self.event(event, list(fields), step)
        entry = entry_of(event)
        self.patch.setitem(CATALOGUE, entry.topic, msgspec.structs.replace(entry, version=entry.version + 1))
        self.patch.setitem(UPCASTERS, (entry.topic, entry.version), step)  # type: ignore[arg-type]


def _saying(
    decide: Callable[[Any, Message], Iterable[Event | Emission]], event: type[Event], made: Callable[[Any], Event]
) -> Callable[[Any, Message], Iterable[Event | Emission]]:
    def saying(state: Any, message: Message) -> Iterable[Event | Emission]:
        for each in decide(state, message):
            said = each.event if isinstance(each, Emission) else each
            if topic_of(said) != topic_of(event):
                yield each
            elif isinstance(each, Emission):
                yield msgspec.structs.replace(each, event=made(msgspec.to_builtins(said)))
            else:
                yield made(msgspec.to_builtins(said))

    return saying


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> LaterRelease:
    """A release that comes after the one that recorded."""
    return LaterRelease(monkeypatch)
