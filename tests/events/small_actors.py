"""Small actors for tests of the fold: they speak in events that exist, and their state tells what they folded."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import msgspec

from schemas.actor import Actor, Emission, Message, Scope, Timer
from schemas.event import Event, topic_of
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.reflex import ReflexBlocked, ReflexPassed


class Diary(msgspec.Struct, frozen=True):
    """A line for every folded message, in the order of folding."""

    lines: tuple[str, ...] = ()


class NoSettings(msgspec.Struct, frozen=True):
    """Nothing to set."""


def write_down(diary: Diary, message: Message) -> Diary:
    """Fold a message: where it stands, what it is, whose it is."""
    event = message.event
    said = event.text if isinstance(event, InputReceived) else getattr(event, "reason", "")
    line = f"{message.seq} {message.time_ns} {topic_of(event)} {message.id} {message.exchange} {said}"
    return Diary((*diary.lines, line))


def answer_by_number(diary: Diary, message: Message) -> Iterable[Event | Emission]:
    """Lead to as many events as the text says; the first is a block, the others pass."""
    text = message.event.text if isinstance(message.event, InputReceived) else ""
    for place in range(int(text) if text.isdigit() else 0):
        yield blocked(len(diary.lines)) if place == 0 else ReflexPassed()


def blocked(number: int) -> ReflexBlocked:
    """Build a block that carries a number."""
    return ReflexBlocked(
        pattern=f"pattern {number}", signature="s", confidence=1.0, view="plain", span=(0, number), matches=()
    )


DIARIST: Actor[Diary] = Actor(
    name="reflex",
    scope=Scope.SESSION,
    consumes=(InputReceived,),
    state_type=Diary,
    settings_type=NoSettings,
    initial=Diary,
    decide=answer_by_number,
    evolve=write_down,
)
"""Leads an input to as many events as its text says, and remembers all it folded."""


def deciding(decide: Callable[[Any, Message], Iterable[Event | Emission]]) -> Actor[Diary]:
    """Return the diarist with another ``decide``."""
    return replace(DIARIST, decide=decide)


def folding(evolve: Callable[[Any, Message], Any]) -> Actor[Diary]:
    """Return the diarist with another ``evolve``."""
    return replace(DIARIST, evolve=evolve)


def minding(timer: Callable[[Any], Timer | None]) -> Actor[Diary]:
    """Return the diarist with a timer."""
    return replace(DIARIST, timer=timer)
