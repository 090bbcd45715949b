"""An index of a whole recorded log, made before a second timeline begins: which events there are, and where.

It takes 18 bytes of memory for each event, and holds the events that no message led to (settings, timers).
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from events.decoding import Recorded, Unreadable, decode, is_spontaneous
from events.log import Seal, Stored
from events.make_decision import APPEND_REFUSED
from events.replay.verifying.sealed_words import SEALED
from events.replay.verifying.unread_causes import unread_then_reason, unreadable_reason
from events.replay.verifying.verification import ActorPartition
from events.routes import routes
from schemas.actor import Actor
from schemas.catalogue import CATALOGUE
from schemas.envelope import CAUSE_SEQ
from schemas.errors import UNREADABLE
from schemas.event import Configured, Failed
from schemas.subjects import Partitions, split_stored


class RecordIndex(msgspec.Struct, frozen=True, eq=False):
    """The index of a recorded log.

    Attributes:
        ids: The first 64 bits of the ids of all actors' events, sorted; ``sequences`` their sequences, and ``topics``
            the numbers of their public subjects in ``names``.
        spontaneous: By partition, in order, the events of an actor that no message led to.
        held: (actor, id of a message) -> why the actor's decision on it cannot be made again.
        failures: (actor, partition, id of a message) -> the reason of the failure that the partition recorded for it.
        unread_settings: By partition, in order, the settings that this release cannot read: the position at which they
            came into force (a sequence), and the reason.
        models: (actor, id of a message) -> the models that the decision used, if one of them was supplied.
        decided_upto: By partition, the sequence up to which its messages were decided when the record ended: what lies
            behind it led to nothing, or is still to be decided.
        actors: Actors that recorded their settings, as each does first.
        effectors: Other owners that recorded something.
        last_seq: Sequence of the last event.
    """

    ids: npt.NDArray[np.uint64]
    sequences: npt.NDArray[np.int64]
    topics: npt.NDArray[np.uint16]
    names: tuple[str, ...]
    spontaneous: Mapping[ActorPartition, tuple[Recorded, ...]]
    held: Mapping[tuple[str, str], str]
    failures: Mapping[tuple[str, str, str], str]
    unread_settings: Mapping[ActorPartition, tuple[tuple[int, str], ...]]
    models: Mapping[tuple[str, str], tuple[str, ...]]
    decided_upto: Mapping[ActorPartition, int]
    actors: frozenset[str]
    effectors: frozenset[str]
    last_seq: int

    def sequence_of(self, id: str) -> int:
        """Return the sequence of the event with this id; 0 if there is none."""
        index = self._index_of(id)
        return int(self.sequences[index]) if index >= 0 else 0

    def topic_of(self, id: str) -> str:
        """Return the public subject of the event with this id; empty if there is none."""
        index = self._index_of(id)
        return self.names[self.topics[index]] if index >= 0 else ""

    def _index_of(self, id: str) -> int:
        short_id = _first_64_bits(id)
        index = int(np.searchsorted(self.ids, short_id))
        return index if index < len(self.ids) and int(self.ids[index]) == short_id else -1


class RecordIndexer:
    """Reads a record once; feed it every message, in order."""

    def __init__(
        self, actors: Iterable[Actor[Any]], partitions: Partitions, supplied: Callable[[str], object] = lambda _: None
    ) -> None:
        """``supplied`` returns the model of another release that was supplied under a name, else None."""
        self._actors = {actor.name: actor for actor in actors}
        self._supplied = supplied
        self._partitions = partitions
        self._ids: list[int] = []
        self._sequences: list[int] = []
        self._topics: list[int] = []
        self._names: dict[str, int] = {}
        self._spontaneous: dict[ActorPartition, list[Recorded]] = {}
        self._held: dict[tuple[str, str], str] = {}
        self._failures: dict[tuple[str, str, str], str] = {}
        self._unread_settings: dict[ActorPartition, list[tuple[int, str]]] = {}
        self._models: dict[tuple[str, str], tuple[str, ...]] = {}
        self._decided_upto: dict[ActorPartition, int] = {}
        self._writers_of: dict[str, tuple[ActorPartition, ...]] = {}
        self._effectors: set[str] = set()
        self._last = 0

    def feed(self, stored: Stored) -> None:
        """Take the next message."""
        self._last = stored.seq
        try:
            topic = split_stored(stored.subject)[0]
        except ValueError:
            return
        entry = CATALOGUE.get(topic)
        if entry is None:
            return
        actor = self._actors.get(entry.owner)
        if actor is None:
            if stored.headers.get("ce-cause"):
                self._effectors.add(entry.owner)
            return
        id = stored.headers.get("ce-id", "")
        if len(id) == _ID_DIGITS:
            self._ids.append(_first_64_bits(id))
            self._sequences.append(stored.seq)
            self._topics.append(self._names.setdefault(topic, len(self._names)))
        self._note_decided_upto(actor, stored)
        if stored.seal in (Seal.CLOSED, Seal.BROKEN):
            self._held[actor.name, stored.headers.get("ce-cause", "")] = SEALED
        if not (is_spontaneous(topic) or issubclass(entry.event, Failed) or actor.missing_model is not None):
            return
        recorded = decode(stored)
        if not isinstance(recorded, Recorded):
            if issubclass(entry.event, Configured):
                self._note_unread_settings(actor, recorded)
            return
        if is_spontaneous(topic):
            self._note_spontaneous(actor, recorded)
        else:
            self._note_held(actor, recorded)

    def finish(self) -> RecordIndex:
        """Return the index of all that was read."""
        ids, sequences = np.array(self._ids, np.uint64), np.array(self._sequences, np.int64)
        topics = np.array(self._topics, np.uint16)
        order = np.argsort(ids, kind="stable")
        return RecordIndex(
            ids[order],
            sequences[order],
            topics[order],
            tuple(self._names),
            {key: tuple(events) for key, events in self._spontaneous.items()},
            self._held,
            self._failures,
            {key: tuple(settings) for key, settings in self._unread_settings.items()},
            self._models,
            self._decided_upto,
            frozenset(name for name, _ in (*self._spontaneous, *self._unread_settings)),
            frozenset(self._effectors),
            self._last,
        )

    def _note_spontaneous(self, actor: Actor[Any], recorded: Recorded) -> None:
        for key in self._writers(actor, recorded.stored.subject):
            self._spontaneous.setdefault(key, []).append(recorded)

    def _note_unread_settings(self, actor: Actor[Any], unread: Unreadable) -> None:
        position = _number(unread.stored.headers.get(CAUSE_SEQ, ""))
        for key in self._writers(actor, unread.stored.subject):
            self._unread_settings.setdefault(key, []).append((position, unreadable_reason(unread)))

    def _note_decided_upto(self, actor: Actor[Any], stored: Stored) -> None:
        cause_seq, index, count = (_number(stored.headers.get(name, "")) for name in _DECISION_HEADERS)
        # If not all events of the decision are recorded, the rest may lie behind the record's end.
        decided_upto = cause_seq if index + 1 >= count else cause_seq - 1
        for key in self._writers(actor, stored.subject):
            self._decided_upto[key] = max(self._decided_upto.get(key, 0), decided_upto)

    def _writers(self, actor: Actor[Any], subject: str) -> tuple[ActorPartition, ...]:
        found = self._writers_of.get(subject)
        if found is None:
            owning = routes([actor], subject, self._partitions.generation_of(subject))
            found = self._writers_of[subject] = tuple(
                (owner.name, partition) for owner, partition, own in owning if own
            )
        return found

    def _note_held(self, actor: Actor[Any], recorded: Recorded) -> None:
        event = recorded.message.event
        reason = ""
        if isinstance(event, Failed):
            for name, partition in self._writers(actor, recorded.stored.subject):
                self._failures[name, partition, recorded.envelope.cause] = event.reason
        if isinstance(event, Failed) and event.reason == APPEND_REFUSED:
            reason = APPEND_REFUSED
        elif isinstance(event, Failed) and event.reason in UNREADABLE:
            reason = unread_then_reason(event.failed_topic, event.reason)
        elif actor.missing_model is not None and (model := actor.missing_model(event)):
            reason = f"model_{model}"
        if reason:
            self._held[actor.name, recorded.envelope.cause] = reason
        elif actor.models is not None and any(map(self._supplied, names := actor.models(event))):
            self._models[actor.name, recorded.envelope.cause] = names


_ID_DIGITS = 32  # hex digits of an event's id
_NUMBER_DIGITS = 20  # of the greatest sequence that a broker counts to, 2^64 - 1
_DECISION_HEADERS = ("ce-causeseq", "ce-index", "ce-count")


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= _NUMBER_DIGITS else 0


def _first_64_bits(id: str) -> int:
    return int(id[:16], 16) if len(id) == _ID_DIGITS else 0
