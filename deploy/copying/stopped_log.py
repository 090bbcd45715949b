"""Checks for commands that change a log: its stream exists, no worker runs on it, and nothing waits for a decision."""

from collections.abc import Iterator
from typing import Any

from events.errors import Misconfigured
from events.jetstream import Connection
from events.jetstream.key_value import KeyValueMembership
from events.jetstream.stream import IMPORTING, find_stream
from events.partition_fold import View
from events.replay.replay import Replay
from events.routes import partition_names
from schemas.permissions import MEMBERS_BUCKET


async def stream_info(connection: Connection, stream: str) -> dict[str, Any]:
    """Return the broker's information of a log's stream.

    Raises:
        Misconfigured: there is none, or it holds an incomplete import.
        LogError: the broker cannot be asked.
    """
    found = await find_stream(connection, stream)
    if found is None:
        raise Misconfigured(
            f"the broker holds no stream {stream}: name the stream (log.stream), the broker or the folder of a log"
        )
    metadata = found["config"].setdefault("metadata", {})
    if IMPORTING in metadata:
        raise Misconfigured(f"stream {stream} holds an import that is not whole: finish that first")
    return found


async def refuse_members(connection: Connection, stream: str, note: str = "") -> None:
    """Raise Misconfigured if a worker lives that may lead partitions of the log; ``note`` ends its message."""
    if await find_stream(connection, f"KV_{MEMBERS_BUCKET}") is None:
        return  # the bucket is kept in memory: no worker has come since the broker restarted
    if members := await KeyValueMembership(connection).members():
        count = len(members)
        raise Misconfigured(
            f"{count} worker{'s' * (count > 1)} run{'s' * (count == 1)} on stream {stream}: stop them all, wait three "
            f"seconds, and run this again; gateways may stay{note}"
        )


def views_of_partitions(replay: Replay) -> Iterator[View]:
    """Yield the views of partitions that the log has, by actor and partition.

    A replay may have views of others: a publisher may store an event under the name of a partition that does not
    exist. No worker leads that one, so what waits there waits for ever.
    """
    for _, view in sorted(replay.views.items()):
        if view.partition in partition_names(view.actor, replay.partitions):
            yield view


def fold_silent_messages(view: View) -> None:
    """Fold the messages that a partition has yet to decide, up to the first one that leads to an event."""
    while view.waiting and view.fold_silent():
        pass


def has_pending(view: View) -> bool:
    """Whether a partition has yet to decide a message that leads to an event; the messages before it are folded."""
    fold_silent_messages(view)
    return bool(view.waiting or view.open_decision)
