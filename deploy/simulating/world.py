"""A world of deciders that are connected by a stream in memory, with the order, ids and bytes of a real log.

Each actor has one partition. Time passes only when it is advanced; timers that fall due then fire.
"""

from collections import deque
from collections.abc import Callable, Iterable
from hashlib import sha256
from typing import Any

import msgspec

from events.make_decision import Cause, NewEvent, address_events
from schemas.actor import Actor, Emission, Message, Timer
from schemas.event import Event
from schemas.identity import event_id
from schemas.subjects import Partitions

ONE_PARTITION = Partitions(agents=1, sessions=1)
"""All agents share one partition, and all sessions another."""

_OUTSIDE = "outside"
"""The source of events that no actor appends."""


class Address(msgspec.Struct, frozen=True):
    """Which agent, session and exchange an event is about; empty: none."""

    agent: str
    session: str = ""
    exchange: str = ""


class World:
    """Every message is delivered, in stream order, to each actor that consumes it.

    Attributes:
        states: Actor name -> its state now.
        now_ns: The world's present time, in Unix nanoseconds.
        seq: The sequence of the last message.
        on_message: Called with each message as it is stored.
    """

    def __init__(self, actors: Iterable[Actor[Any]], now_ns: int) -> None:
        self._actors = {actor.name: actor for actor in actors}
        self.states: dict[str, Any] = {name: actor.initial() for name, actor in self._actors.items()}
        self.now_ns = now_ns
        self.seq = 0
        self.on_message: Callable[[Message], None] | None = None
        self._undelivered: deque[Message] = deque()
        self._digest = sha256()

    @property
    def digest(self) -> str:
        """SHA-256 over the subjects, ids and bodies of all messages so far, in order."""
        return self._digest.hexdigest()

    def send(self, event: Event, address: Address) -> None:
        """Store an event from outside and run until nothing more follows from it."""
        self._store(self._addressed(_OUTSIDE, [event], address))
        self._drain()

    def store_as(self, actor_name: str, event: Event, address: Address) -> None:
        """Store an event as if the actor ``actor_name`` had decided it."""
        events = self._addressed(actor_name, [event], address)
        self._fold(actor_name, events)
        self._store(events)
        self._drain()

    def advance(self, to_ns: int) -> None:
        """Let time pass until ``to_ns``; timers that fall due on the way fire."""
        while (earliest := self._earliest_timer()) is not None and earliest[1].due_ns <= to_ns:
            name, timer = earliest
            self.now_ns = max(self.now_ns, timer.due_ns)
            fired = address_events(name, self._cause(timer.cause, Address("")), [timer.emission], ONE_PARTITION)
            self._fold(name, fired)
            self._store(fired)
            self._drain()
        self.now_ns = max(self.now_ns, to_ns)

    def _earliest_timer(self) -> tuple[str, Timer] | None:
        """Return the timer that is due first, and the name of its actor."""
        timers = []
        for name, actor in self._actors.items():
            timer = actor.timer(self.states[name]) if actor.timer is not None else None
            if timer is not None:
                timers.append((name, timer))
        return min(timers, key=lambda each: (each[1].due_ns, each[0]), default=None)

    def _addressed(self, actor_name: str, events: list[Event | Emission], address: Address) -> tuple[NewEvent, ...]:
        cause = event_id(address.exchange, actor_name, self.seq)
        return address_events(actor_name, self._cause(cause, address), events, ONE_PARTITION)

    def _cause(self, cause: str, address: Address) -> Cause:
        tokens = ONE_PARTITION.agent_token(address.agent), ONE_PARTITION.session_token(address.session)
        return Cause(cause, self.seq, self.now_ns, address.agent, address.session, address.exchange, *tokens)

    def _fold(self, name: str, decided: Iterable[NewEvent]) -> None:
        for each in decided:
            self.states[name] = self._actors[name].fold(self.states[name], each.message)

    def _store(self, decided: Iterable[NewEvent]) -> None:
        for each in decided:
            self.seq += 1
            self._digest.update(f"{each.subject}\n{each.message.id}\n".encode() + each.data)
            message = msgspec.structs.replace(each.message, seq=self.seq, time_ns=self.now_ns)
            if self.on_message is not None:
                self.on_message(message)
            self._undelivered.append(message)

    def _drain(self) -> None:
        while self._undelivered:
            message = self._undelivered.popleft()
            for name, actor in self._actors.items():
                if type(message.event) in actor.consumes:
                    self._deliver(name, actor, message)

    def _deliver(self, name: str, actor: Actor[Any], message: Message) -> None:
        emitted = tuple(actor.decide(self.states[name], message))
        self.states[name] = actor.fold(self.states[name], message)
        if not emitted:
            return
        address = Address(message.agent, message.session, message.exchange)
        cause = msgspec.structs.replace(self._cause(message.id, address), seq=message.seq, time_ns=message.time_ns)
        decided = address_events(name, cause, emitted, ONE_PARTITION)
        self._fold(name, decided)
        self._store(decided)
