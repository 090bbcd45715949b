"""Four actors in a row on the real runtime, with a vocabulary of the benchmark's own: the process under measurement.

Run by ``bench.hops`` as ``python -m bench.harness.hops_neuraxis URL SYNC``, where SYNC is the broker's
``sync_interval``; prints ``ready`` and works until its standard input ends.
"""

import asyncio
import sys
from collections.abc import Iterable
from functools import partial
from typing import Any

import msgspec

from bench.harness.worker import work
from schemas.actor import Actor, Message, Scope
from schemas.catalogue import CATALOGUE
from schemas.entry import Entry
from schemas.event import Configured, Event, Failed, topic_of


class Hop(Event, frozen=True, kw_only=True):
    """What every hop passes on."""

    number: int
    text: str


class Asked(Hop, frozen=True, kw_only=True, tag="forged_id.asked.received"):
    """Starts a pipeline."""


class FirstPassed(Hop, frozen=True, kw_only=True, tag="forged_id.first.passed"):
    """The first hop."""


class FirstConfigured(Configured, frozen=True, kw_only=True, tag="forged_id.first.configured"):
    """Settings of the first."""


class FirstFailed(Failed, frozen=True, kw_only=True, tag="forged_id.first.failed"):
    """A failure of the first."""


class SecondPassed(Hop, frozen=True, kw_only=True, tag="forged_id.second.passed"):
    """The second hop."""


class SecondConfigured(Configured, frozen=True, kw_only=True, tag="forged_id.second.configured"):
    """Settings of the second."""


class SecondFailed(Failed, frozen=True, kw_only=True, tag="forged_id.second.failed"):
    """A failure of the second."""


class ThirdPassed(Hop, frozen=True, kw_only=True, tag="forged_id.third.passed"):
    """The third hop."""


class ThirdConfigured(Configured, frozen=True, kw_only=True, tag="forged_id.third.configured"):
    """Settings of the third."""


class ThirdFailed(Failed, frozen=True, kw_only=True, tag="forged_id.third.failed"):
    """A failure of the third."""


class FourthPassed(Hop, frozen=True, kw_only=True, tag="forged_id.fourth.passed"):
    """The fourth hop: the end."""


class FourthConfigured(Configured, frozen=True, kw_only=True, tag="forged_id.fourth.configured"):
    """Settings of the fourth."""


class FourthFailed(Failed, frozen=True, kw_only=True, tag="forged_id.fourth.failed"):
    """A failure of the fourth."""


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


def _hop(
    name: str, consumed: type[Hop], passed: type[Hop], configured: type[Configured], failed: type[Failed]
) -> Actor[Seen]:
    return Actor(
        name=name,
        scope=Scope.SESSION,
        consumes=(consumed,),
        state_type=Seen,
        settings_type=Settings,
        initial=Seen,
        decide=partial(decide, passed),
        evolve=evolve,
        configured=configured,
        failed=failed,
    )


CHAIN = (
    _hop("first", Asked, FirstPassed, FirstConfigured, FirstFailed),
    _hop("second", FirstPassed, SecondPassed, SecondConfigured, SecondFailed),
    _hop("third", SecondPassed, ThirdPassed, ThirdConfigured, ThirdFailed),
    _hop("fourth", ThirdPassed, FourthPassed, FourthConfigured, FourthFailed),
)
"""The actors, each consuming what the one before passes on."""


def enter_vocabulary() -> None:
    """Enter the chain's events into this process's catalogue, which as shipped does not hold them."""
    events: dict[type[Event], tuple[str, Any]] = {Asked: ("asked", {"number": 1, "text": ""})}
    for actor, passed in zip(CHAIN, (FirstPassed, SecondPassed, ThirdPassed, FourthPassed), strict=True):
        events[passed] = (actor.name, {"number": 1, "text": ""})
        events[actor.configured] = (actor.name, {"settings": {}, "settings_hash": "", "behaviour": 1})
        events[actor.failed] = (actor.name, {"reason": "", "error": "", "failed_seq": 1, "failed_topic": ""})
    for event, (owner, fields) in events.items():
        CATALOGUE[topic_of(event)] = Entry(
            event=event,
            owner=owner,
            scope=Scope.SESSION,
            meaning="A hop of a benchmark.",
            sample=event(**fields),
            spontaneous=issubclass(event, Configured),
        )


if __name__ == "__main__":
    enter_vocabulary()
    asyncio.run(work(sys.argv[1], sys.argv[2], CHAIN))
