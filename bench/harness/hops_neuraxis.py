"""Four actors in a row on the real runtime, with events of the benchmark's own: the measured process.

Run by ``bench.system.hops`` as ``python -m bench.harness.hops_neuraxis URL SYNC``, where SYNC is the broker's
``sync_interval``; prints ``ready`` and works until its standard input ends.
"""

import asyncio
import sys
from collections.abc import Iterable
from functools import partial
from itertools import pairwise
from typing import Any

import msgspec

from bench.harness.worker import work
from schemas.actor import Actor, Message, Scope
from schemas.catalogue import CATALOGUE
from schemas.entry import Entry, own_events
from schemas.event import Configured, Event, topic_of


class Hop(Event, frozen=True, kw_only=True):
    """What every hop passes on."""

    number: int
    text: str


class Asked(Hop, frozen=True, kw_only=True, tag="forged_id.asked.received"):
    """Starts a pipeline."""


class FirstPassed(Hop, frozen=True, kw_only=True, tag="forged_id.first.passed"):
    """The first hop."""


class SecondPassed(Hop, frozen=True, kw_only=True, tag="forged_id.second.passed"):
    """The second hop."""


class ThirdPassed(Hop, frozen=True, kw_only=True, tag="forged_id.third.passed"):
    """The third hop."""


class FourthPassed(Hop, frozen=True, kw_only=True, tag="forged_id.fourth.passed"):
    """The fourth hop: the end."""


class Settings(msgspec.Struct, frozen=True):
    """Nothing to set."""


class Seen(msgspec.Struct, frozen=True):
    """How many messages were folded."""

    count: int = 0


def decide(passed: type[Hop], state: Seen, message: Message) -> Iterable[Event]:
    """Pass a hop on as the next."""
    event = message.event
    return (passed(number=event.number, text=event.text),) if isinstance(event, Hop) else ()


def evolve(state: Seen, message: Message) -> Seen:
    """Count."""
    return Seen(state.count + 1)


def _hop(name: str, consumed: type[Hop], passed: type[Hop]) -> Actor[Seen]:
    return Actor(
        name=name,
        scope=Scope.SESSION,
        consumes=(consumed,),
        state_type=Seen,
        settings_type=Settings,
        initial=Seen,
        decide=partial(decide, passed),
        evolve=evolve,
    )


NAMES = ("first", "second", "third", "fourth")
"""The names of the actors, in the order of the chain."""

HOPS: tuple[type[Hop], ...] = (Asked, FirstPassed, SecondPassed, ThirdPassed, FourthPassed)
"""What begins the chain, and what each actor emits."""


def chain() -> tuple[Actor[Seen], ...]:
    """Return the actors, each consuming what the one before passes on; their events must be in the catalogue."""
    return tuple(_hop(name, *hops) for name, hops in zip(NAMES, pairwise(HOPS), strict=True))


def enter_vocabulary() -> None:
    """Add the chain's events to this process's catalogue, which does not ship with them."""
    events: dict[type[Event], tuple[str, Any]] = {Asked: ("asked", {"number": 1, "text": ""})}
    for name, passed in zip(NAMES, HOPS[1:], strict=True):
        configured, failed = own_events(name)
        events[passed] = (name, {"number": 1, "text": ""})
        events[configured] = (name, {"settings": {}, "settings_hash": "", "behaviour": 1})
        events[failed] = (name, {"reason": "", "error": "", "failed_seq": 1, "failed_topic": ""})
    for event, (owner, fields) in events.items():
        CATALOGUE[topic_of(event)] = Entry(
            owner=owner,
            scope=Scope.SESSION,
            meaning="A hop of a benchmark.",
            sample=event(**fields),
            spontaneous=issubclass(event, Configured),
        )


if __name__ == "__main__":
    enter_vocabulary()
    asyncio.run(work(sys.argv[1], sys.argv[2], chain()))
