"""All actors, one partition each, joined by a stream in memory: the order of a log without its transport."""

from collections import Counter, deque
from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from schemas.actor import Actor, Message
from schemas.catalogue import entry_of
from schemas.event import Event
from schemas.identity import event_id
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.responder import ResponseEmitted
from tests.actors.scenario import MS, START_NS, Address, Partition

PATH = frozenset({
    "appraisal", "arbiter", "breaker", "clock", "coherence", "gateway", "guardrails", "intuition", "llm", "memory",
    "reflex", "responder", "router",
})  # fmt: skip
"""Owners of the events that one exchange costs; an actor that somebody adds may record more of it."""


class Pipeline:
    """Every message is delivered, in stream order, to each actor that consumes it.

    Attributes:
        stream: Every message, in order.
        consumed: Actor name -> the messages it was given.
        causes: Message id -> id of the message that led to it; inputs have none.
    """

    def __init__(
        self,
        actors: Mapping[str, Actor[Any]],
        *,
        stopped: Collection[str] = (),
        now_ns: int = START_NS,
        after_seq: int = 0,
    ) -> None:
        """Begin with a stream of no messages, whose first one has the sequence after ``after_seq``."""
        self.partitions = {name: Partition(actor) for name, actor in actors.items() if name not in stopped}
        self.stream: list[Message] = []
        self.consumed: dict[str, list[Message]] = {name: [] for name in self.partitions}
        self.causes: dict[str, str] = {}
        self.now_ns = now_ns
        self._after_seq = after_seq
        self._sent: Counter[str] = Counter()
        self._queue: deque[Message] = deque()

    def send(self, event: Event, address: Address) -> None:
        """Store an outside event and run until nothing more follows from it.

        Its id follows from its exchange alone: what others said before is no part of what is said now.
        """
        self._sent[address.exchange] += 1
        self._store(
            Message(
                event=event,
                seq=0,
                id=event_id(address.exchange, "outside", self._sent[address.exchange]),
                time_ns=0,
                agent=address.agent,
                session=address.session,
                exchange=address.exchange,
            )
        )
        self._drain()

    def ask(self, text: str, address: Address) -> None:
        """Send an input."""
        self.send(InputReceived(text=text), address)

    def advance(self, ms: int) -> None:
        """Let time pass: every event that an actor owes to it is appended when it is due."""
        until = self.now_ns + ms * MS
        while (due := self._earliest()) is not None and due[0] <= until:
            self.now_ns = max(self.now_ns, due[0])
            partition = self.partitions[due[1]]
            cause = partition.actor.timer(partition.state).cause  # type: ignore[misc, union-attr]
            fired = partition.fire()
            assert fired is not None
            self._follow(cause, fired)
            self._drain()
        self.now_ns = until

    def told(self) -> list[str]:
        """Return what the path's owners recorded of exchanges, in order: public subjects without their root."""
        entries = (entry_of(message.event) for message in self.stream if message.exchange)
        return [entry.topic.removeprefix("forged_id.") for entry in entries if entry.owner in PATH]

    def ends(self) -> list[Message]:
        """Return the messages that ended an exchange, in order."""
        return [message for message in self.stream if isinstance(message.event, ResponseEmitted)]

    def _earliest(self) -> tuple[int, str] | None:
        due = []
        for name, partition in self.partitions.items():
            timer = partition.actor.timer(partition.state) if partition.actor.timer else None
            if timer is not None:
                due.append((timer.due_ns, name))
        return min(due, default=None)

    def _store(self, message: Message) -> None:
        stored = msgspec.structs.replace(message, seq=self._after_seq + len(self.stream) + 1, time_ns=self.now_ns)
        self.stream.append(stored)
        self._queue.append(stored)

    def _follow(self, cause: str, message: Message) -> None:
        assert message.id not in self.causes, "one decision, one id"
        self.causes[message.id] = cause
        self._store(message)

    def _drain(self) -> None:
        while self._queue:
            message = self._queue.popleft()
            for name, partition in self.partitions.items():
                if type(message.event) in partition.actor.consumes:
                    self.consumed[name].append(message)
                    for led_to in partition.deliver(message):
                        self._follow(message.id, led_to)
