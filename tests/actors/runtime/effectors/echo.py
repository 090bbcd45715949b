"""A small effector and its vocabulary, which the shipped catalogue does not hold: an echo that asks the outside."""

from collections.abc import Awaitable, Callable, Sequence

from actors.runtime.envelopes import to_record
from events.log import Append, Log, Record
from events.make_decision import Cause, address_events
from schemas.actor import Emission, Message, Scope
from schemas.catalogue import CATALOGUE
from schemas.effectors.contract import Effector
from schemas.entry import Entry
from schemas.event import Event, Failed
from schemas.subjects import Partitions


class EchoAsked(Event, frozen=True, kw_only=True, tag="forged_id.asker.asked"):
    """Somebody wants to hear ``text`` again."""

    text: str


class EchoSung(Event, frozen=True, kw_only=True, tag="forged_id.singer.sang"):
    """Somebody sang, and hears it again."""

    text: str


class EchoAnswered(Event, frozen=True, kw_only=True, tag="forged_id.echo.answered"):
    """What came back."""

    text: str


class EchoFailed(Failed, frozen=True, kw_only=True, tag="forged_id.echo.failed"):
    """Nothing came back."""


ENTRIES = (
    Entry(owner="asker", scope=Scope.SESSION, meaning="A question.", sample=EchoAsked(text="")),
    Entry(owner="singer", scope=Scope.SESSION, meaning="A song.", sample=EchoSung(text="")),
    Entry(owner="echo", scope=Scope.SESSION, meaning="An answer.", sample=EchoAnswered(text="")),
    Entry(
        owner="echo",
        scope=Scope.SESSION,
        meaning="No answer.",
        sample=EchoFailed(reason="", error="", failed_seq=1, failed_topic=""),
    ),
)

Perform = Callable[[Message], Awaitable[Sequence[Event | Emission]]]


def enter_vocabulary() -> None:
    """Enter the vocabulary into this process's catalogue."""
    CATALOGUE.update({entry.topic: entry for entry in ENTRIES})


async def echo(message: Message) -> Sequence[Event | Emission]:
    """Answer at once."""
    assert isinstance(message.event, EchoAsked | EchoSung)
    return [EchoAnswered(text=message.event.text)]


def effector(perform: Perform = echo, *, timeout_s: float = 30.0, concurrency: int = 4) -> Effector:
    """Build the effector with a performance of its own."""
    return Effector("echo", (EchoAsked, EchoSung), perform, EchoFailed, timeout_s=timeout_s, concurrency=concurrency)


def question(number: int, text: str = "hello", *, agent: str = "ann", session: str = "") -> Record:
    """Build a request to be stored; its id is ``question-<number>``'s, its exchange ``exchange-<number>``."""
    cause = Cause(f"question-{number}", 0, 0, agent, session or f"s{number}", f"exchange-{number}", "_", "_")
    [decided] = address_events("asker", cause, (EchoAsked(text=text),), Partitions())
    return to_record(decided, "test", "", 1_750_000_000_000_000_000, 0)


def song(number: int, text: str = "la") -> Record:
    """Build a request of the other kind."""
    cause = Cause(f"song-{number}", 0, 0, "ann", f"s{number}", f"song-{number}", "_", "_")
    [decided] = address_events("singer", cause, (EchoSung(text=text),), Partitions())
    return to_record(decided, "test", "", 1_750_000_000_000_000_000, 0)


async def ask(log: Log, *numbers: int) -> None:
    """Store requests, all at once."""
    await log.append([Append([question(number) for number in numbers])])
