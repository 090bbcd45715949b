"""Snapshots: a view's checkpoint as bytes. An unusable one is no error: the log is then folded from its start."""

from hashlib import sha256
from typing import Any

import msgspec

from events.log import Log
from events.partition_fold import Checkpoint
from schemas.actor import Actor
from schemas.catalogue import decode_event, entry_of, owned_by
from schemas.event import Configured, encode_event, topic_of
from schemas.identity import content_hash
from schemas.persistent import decode_state, encode_state, state_hash
from schemas.state_structure import structure_hash

_CHECKSUM_BYTES = sha256().digest_size


class _Snapshot(msgspec.Struct, frozen=True):
    """A partition's checkpoint as it is stored, and what tells whether this release can use it."""

    actor: str
    partition: str
    behaviour: int
    position: int = msgspec.field(name="place")  # its name in stored snapshots
    own_last: int
    time_ns: int
    configured: bytes
    state_hash: str  # of releases before ``structure``, "" since then
    state: bytes
    fenced: int | None = None
    own_id: str = ""
    losses: int = 0  # the sequence of the last recorded loss; see ``pack``
    lost_causes: tuple[str, ...] = msgspec.field(name="answered", default=())  # its name in stored snapshots
    view: str = ""  # a hash; see ``_view_hash``
    structure: str = ""  # of the state's type; see ``structure_hash``


def snapshot_key(actor: Actor[Any], partition: str) -> str:
    """Return the key under which a partition's snapshot is kept."""
    return partition_key(actor.name, partition)


def partition_key(actor: str, partition: str) -> str:
    """Return the key of :func:`snapshot_key`, made from the actor's name."""
    return f"{actor}.{partition}"


def pack(
    actor: Actor[Any], partition: str, checkpoint: Checkpoint, losses: int = 0, state: bytes | None = None
) -> bytes:
    """Encode a view's checkpoint, with a checksum: one wrong bit in its position would skip or repeat messages.

    ``losses`` is the sequence of the last recorded loss of the log that was known when the view was made. ``state`` is
    the checkpoint's state if it is encoded already.
    """
    body = msgspec.msgpack.encode(
        _Snapshot(
            actor.name,
            partition,
            actor.behaviour,
            checkpoint.position,
            checkpoint.own_last,
            checkpoint.time_ns,
            encode_event(checkpoint.configured) if checkpoint.configured is not None else b"",
            "",
            encode_state(checkpoint.state) if state is None else state,
            checkpoint.fenced,
            checkpoint.own_id,
            losses,
            checkpoint.lost_causes,
            _view_hash(actor),
            structure_hash(actor.state_type),
        )
    )
    return sha256(body).digest() + body


def unpack(actor: Actor[Any], partition: str, data: bytes) -> Checkpoint | None:
    """Decode a snapshot; None when it is of another partition, behaviour, view or structure, or damaged.

    In another structure a field was renamed, dropped or added since. In another view the state would hold an event in
    its old meaning, lack events that the actor did not consume before, or hold what this release knows nothing of.
    """
    checksum, body = data[:_CHECKSUM_BYTES], data[_CHECKSUM_BYTES:]
    if sha256(body).digest() != checksum:
        return None
    try:
        found = msgspec.msgpack.decode(body, type=_Snapshot)
        if (found.actor, found.partition, found.behaviour) != (actor.name, partition, actor.behaviour):
            return None
        if found.view != _view_hash(actor):
            return None
        if found.structure and found.structure != structure_hash(actor.state_type):
            return None
        state = decode_state(found.state, actor.state_type)
        if not found.structure and state_hash(state) != found.state_hash:
            return None
        version = entry_of(actor.configured).version
        configured = decode_event(topic_of(actor.configured), found.configured, version) if found.configured else None
    except ValueError:  # msgspec's decoding errors and the vocabulary's are ValueErrors
        return None
    if configured is not None and not isinstance(configured, Configured):
        return None
    where = found.position, found.own_last, found.time_ns, configured, found.fenced, found.own_id
    return Checkpoint(state, *where, found.lost_causes)


def _view_hash(actor: Actor[Any]) -> str:
    """Return a hash of what the catalogue says of the events in an actor's view, which its state rests on.

    It covers which events these are, their versions, and how alerts of them are grouped, which the alerts actor folds.
    """
    events = (*actor.consumes, *(entry.event for entry in owned_by(actor.name)))
    entries = {entry.topic: entry for entry in map(entry_of, events)}
    return content_hash(
        [
            (topic, entry.version, entry.severity, entry.grouping, [topic_of(end) for end in entry.ended_by])
            for topic, entry in sorted(entries.items())
        ]
    )


def last_known_loss(data: bytes) -> int:
    """Return the sequence of the last recorded loss of the log that a usable snapshot knew of, 0 for none."""
    return msgspec.msgpack.decode(data[_CHECKSUM_BYTES:], type=_Snapshot).losses


async def matches_log(log: Log, checkpoint: Checkpoint) -> bool:
    """Whether the log still holds a snapshot's last message and last own event.

    They are compared by time and id, not by sequence alone: a log that lost its tail gives the same sequences to other
    messages. What was removed from the log's beginning cannot be compared.

    Raises:
        LogError: the log cannot be asked.
    """
    if checkpoint.position > log.trimmed_through:
        message = await log.at(checkpoint.position)
        if message is None or message.time_ns != checkpoint.time_ns:
            return False
    if checkpoint.own_last > log.trimmed_through:
        own = await log.at(checkpoint.own_last)
        return own is not None and own.headers.get("ce-id") == checkpoint.own_id
    return True
