"""A test harness for deciders, without a broker: given earlier messages, when a message comes, then these events.

One partition of the actor is fed as the runtime feeds it: it decides, then folds the message and what that led to. A
test says as much as it needs, be it in one line::

    given(ACTOR, InputReceived(text="Hello")).when(InputReceived(text="Hello again")).then_nothing()

or by keeping the partition and asking it again and again.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from schemas.actor import Actor, Emission, Message
from schemas.event import Event
from schemas.identity import content_hash, event_id
from schemas.persistent import state_hash

START_NS = 1_700_000_000_000_000_000
MS = 1_000_000


class Outcome(list[Event]):
    """The events that a message led to, in order."""

    def then(self, *expected: Event) -> None:
        """Raise AssertionError, with both lists, unless these are the events."""
        if self != list(expected):
            raise AssertionError(f"the message led to {_listed(self)}; expected {_listed(expected)}")

    def then_nothing(self) -> None:
        """Raise AssertionError, with the events, unless there are none."""
        self.then()


class Address(msgspec.Struct, frozen=True):
    """The keys of a message."""

    agent: str = "agent"
    session: str = "session"
    exchange: str = "exchange"


HERE = Address()


class Partition:
    """The fold of one partition of an actor, and every message it led to.

    Args:
        earlier: Events that it receives first; it decides these, too.

    Attributes:
        actor: The actor.
        state: Its state.
        seq: Sequence of the last message.
        now_ns: When that was stored (Unix nanoseconds).
        emitted: The messages that it has led to.
    """

    def __init__(self, actor: Actor[Any], *earlier: Event) -> None:
        self.actor = actor
        self.state = actor.initial()
        self.seq = 0
        self.now_ns = START_NS
        self.emitted: list[Message] = []
        for event in earlier:
            self.hear(event)

    def hear(self, event: Event, address: Address = HERE, *, after_ms: int = 0) -> list[Message]:
        """Deliver ``event``, stored ``after_ms`` after the previous one; return the messages it led to."""
        self.seq += 1
        self.now_ns += after_ms * MS
        message = Message(
            event=event,
            seq=self.seq,
            id=event_id("outside", "test", self.seq),
            time_ns=self.now_ns,
            agent=address.agent,
            session=address.session,
            exchange=address.exchange,
        )
        return self.deliver(message)

    def deliver(self, message: Message) -> list[Message]:
        """Deliver a message as it is; return the messages it led to."""
        self.seq, self.now_ns = message.seq, message.time_ns
        led_to = as_messages(self.actor, message, self.actor.decide(self.state, message))
        self.fold(message, *led_to)
        self.emitted += led_to
        return led_to

    def fold(self, *messages: Message) -> None:
        """Fold messages without deciding, as recovery does."""
        for message in messages:
            self.state = self.actor.fold(self.state, message)

    def when(self, event: Event, address: Address = HERE, *, after_ms: int = 0) -> Outcome:
        """Deliver ``event``; return the events it led to."""
        return Outcome(message.event for message in self.hear(event, address, after_ms=after_ms))

    def configure(self, settings: msgspec.Struct) -> "Partition":
        """Fold the actor's own ``configured`` with these settings."""
        self.fold(self.own(configured(self.actor, settings)))
        return self

    def fire(self) -> Message | None:
        """Fold the earliest due event of an actor that acts by time, and return it."""
        timer = self.actor.timer(self.state) if self.actor.timer else None
        if timer is None:
            return None
        fired = self.own(timer.emission, cause=timer.cause)
        self.fold(fired)
        self.emitted.append(fired)
        return fired

    def own(self, emission: Event | Emission, cause: str = "") -> Message:
        """Return an own event that no message led to, with the sequence and time of the last message."""
        event = emission.event if isinstance(emission, Emission) else emission
        latest = Message(event=event, seq=self.seq, id=cause, time_ns=self.now_ns)
        return as_messages(self.actor, latest, [emission])[0]

    def state_hash(self) -> str:
        """Return the hash of the state."""
        return state_hash(self.state)


def given(actor: Actor[Any], *earlier: Event, settings: msgspec.Struct | None = None) -> Partition:
    """Return a partition of an actor that has received these events.

    Args:
        settings: Its settings, where they are not the default ones.
    """
    partition = Partition(actor)
    if settings is not None:
        partition.configure(settings)
    for event in earlier:
        partition.hear(event)
    return partition


def as_messages(actor: Actor[Any], cause: Message, emissions: Iterable[Event | Emission]) -> list[Message]:
    """Return a decision's events as messages with the sequence and time of their cause.

    They have the addresses of their cause, unless an emission gives another.
    """
    messages = []
    for index, each in enumerate(emissions):
        emission = each if isinstance(each, Emission) else Emission(each)
        messages.append(
            Message(
                event=emission.event,
                seq=cause.seq,
                id=event_id(cause.id, actor.name, index),
                time_ns=cause.time_ns,
                agent=cause.agent if emission.agent is None else emission.agent,
                session=cause.session if emission.session is None else emission.session,
                exchange=cause.exchange if emission.exchange is None else emission.exchange,
            )
        )
    return messages


def configured(actor: Actor[Any], settings: msgspec.Struct) -> Event:
    """Return the ``configured`` event of an actor with these settings."""
    return actor.configured(
        settings=msgspec.to_builtins(settings), settings_hash=content_hash(settings), behaviour=actor.behaviour
    )


def _listed(events: Iterable[Event]) -> str:
    return ", ".join(map(repr, events)) or "nothing"
