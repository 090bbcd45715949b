"""Logs as a runtime writes them, made in memory: every partition of the given actors has one leading view.

A view may decide long after its messages were stored, as under load, so that own events lie anywhere behind their
causes. All goes through the stored form: what is consumed was encoded before.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from actors.runtime.envelopes import to_record
from events.decoding import decode
from events.log import Record, Stored
from events.make_decision import Cause, NewEvent
from events.partition_fold import Checkpoint, View
from events.routes import partition_names, partitions_of
from schemas.actor import Actor, Emission, Scope
from schemas.catalogue import prefixes_of
from schemas.envelope import Envelope, encode_headers
from schemas.event import Event, encode_event, topic_of
from schemas.identity import event_id
from schemas.intake.timestamps import rfc3339
from schemas.subjects import NO_PARTITION, Partitions, split_stored, stored_subject
from tests.actors.scenario import HERE, MS, START_NS, Address, configured

PARTITIONS = Partitions(agents=2, sessions=3)
Key = tuple[str, str]


class Kept(msgspec.Struct, frozen=True):
    """Where a view stood, with all it had written acknowledged, when the log was ``length`` messages long."""

    length: int
    standing: Checkpoint


class Recording:
    """A log that grows.

    Attributes:
        log: What is stored; the message of sequence n is at n - 1.
        leaders: (actor name, partition) -> the view that decides there.
        kept: Every standing of each view, oldest first.
    """

    def __init__(self, actors: Iterable[Actor[Any]], partitions: Partitions = PARTITIONS) -> None:
        self.actors = tuple(actors)
        self.partitions = partitions
        self.log: list[Stored] = []
        self.now_ns = START_NS
        self.leaders: dict[Key, View] = {
            (actor.name, name): View(actor, name, partitions)
            for actor in self.actors
            for name in partition_names(actor, partitions)
        }
        self.kept: dict[Key, list[Kept]] = {key: [] for key in self.leaders}

    def send(self, event: Event, address: Address = HERE, *, body: bytes | None = None, **headers: str) -> Stored:
        """Store an event from outside; ``body`` and ``headers`` (``ce_index="x"``) replace what it would have."""
        topic = topic_of(event)
        envelope = Envelope(
            id=event_id("outside", "test", len(self.log)),
            topic=topic,
            source="test",
            time=rfc3339(self.now_ns),
            agent=address.agent,
            session=address.session,
            exchange=address.exchange,
        )
        agent, session = self.partitions.agent_token(address.agent), self.partitions.session_token(address.session)
        changed = {name.replace("_", "-"): value for name, value in headers.items()}
        record = Record(
            stored_subject(topic, agent, session),
            encode_headers(envelope) | changed,
            encode_event(event) if body is None else body,
        )
        return self._store(record)

    def configure(self, settings: Mapping[str, msgspec.Struct] | None = None) -> None:
        """Have every leader record its settings, as at a start."""
        for (name, partition), view in self.leaders.items():
            chosen = (settings or {}).get(name) or view.actor.settings_type()
            identity = f"{name}/{partition}/{view.own_last}"
            self.append(
                view, view.spontaneous_event(own_cause(view, identity), Emission(configured(view.actor, chosen)))
            )

    def work(self, key: Key, most: int | None = None) -> None:
        """Have one leader decide what waits for it, ``most`` messages at most."""
        view = self.leaders[key]
        done = 0
        while view.waiting and (most is None or done < most):
            self.append(view, view.decide_next())
            done += 1

    def settle(self) -> None:
        """Decide until nothing waits anywhere."""
        while any(view.waiting for view in self.leaders.values()):
            for key in self.leaders:
                self.work(key)

    def advance(self, ms: int) -> None:
        """Let time pass; a leader with nothing waiting appends what has become due."""
        self.now_ns += ms * MS
        for view in self.leaders.values():
            while not view.waiting and view.actor.timer is not None:
                timer = view.actor.timer(view.state)
                if timer is None or timer.due_ns > self.now_ns:
                    break
                self.append(view, view.spontaneous_event(own_cause(view, timer.cause), timer.emission))

    def of(self, key: Key) -> Iterator[tuple[Stored, bool]]:
        """Yield what a partition's view holds, in order: (message, whether the actor wrote it)."""
        yield from part_of(self.log, self.leaders[key].actor, key[1], self.partitions)

    def append(self, view: View, decided: tuple[NewEvent, ...]) -> None:
        """Store what a leader decided, acknowledged at once."""
        for one in decided:
            self._store(to_record(one, "test", "", self.now_ns, 7))
        if decided:
            view.acknowledge([one.topic for one in decided], len(self.log))
        key = view.actor.name, view.partition
        self.kept[key].append(Kept(len(self.log), view.checkpoint()))

    def _store(self, record: Record) -> Stored:
        stored = Stored(len(self.log) + 1, self.now_ns, record.subject, dict(record.headers), record.data)
        self.log.append(stored)
        self.now_ns += MS
        for (_, partition), view in self.leaders.items():
            for _, own in part_of([stored], view.actor, partition, self.partitions):
                if not own:
                    view.receive(decode(stored))
        return stored


def own_cause(view: View, identity: str) -> Cause:
    """Return what a shell gives as the cause of an event that no message led to."""
    tokens = {Scope.SESSION: (NO_PARTITION, view.partition), Scope.AGENT: (view.partition, NO_PARTITION)}
    agent, session = tokens.get(view.actor.scope, (NO_PARTITION, NO_PARTITION))
    return Cause(identity, view.position, view.time_ns, "", "", "", agent, session)


def part_of(
    log: Iterable[Stored], actor: Actor[Any], partition: str, partitions: Partitions
) -> Iterator[tuple[Stored, bool]]:
    """Yield the messages of ``log`` that belong to one partition's view: (message, whether the actor wrote it)."""
    consumed = {topic_of(event) for event in actor.consumes}
    for stored in log:
        topic, _, _ = split_stored(stored.subject)
        own = topic.split(".")[1] in prefixes_of(actor.name)
        if (own or topic in consumed) and partition in partitions_of(actor, stored.subject, partitions):
            yield stored, own


def read_into(view: View, messages: Iterable[tuple[Stored, bool]]) -> View:
    """Feed a view recorded messages, as recovery and standby do."""
    for stored, own in messages:
        if own:
            view.apply_own(decode(stored))
        else:
            view.receive(decode(stored))
    return view


def decide_all(view: View) -> list[NewEvent]:
    """Have a view decide all that waits; return what came of it."""
    decided: list[NewEvent] = []
    while view.waiting:
        decided += view.decide_next()
    return decided
