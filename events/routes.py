"""Which subjects an actor reads, to which partition a stored message belongs, and which filter fences it.

A *fence* lets one writer at a time append for a partition: an append is refused unless the last message on the fence's
subjects is the last one that the writer has read (``events.log.Fence``).
"""

from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from typing import Any

from schemas.actor import Actor, Scope
from schemas.catalogue import entry_of, owned_by, prefixes_of
from schemas.event import Event, topic_of
from schemas.subjects import NO_PARTITION, STORED_ROOT, Partitions, split_stored, topic_filter

WHOLE = "all"
"""The one partition of a GLOBAL actor."""


def main_prefix(actor: Actor[object]) -> str:
    """Return the prefix of an actor's main subjects, which is that of its ``configured`` event.

    Its fences name the last event on them.
    """
    return entry_of(actor.configured).prefix


@lru_cache(maxsize=1 << 8)
def partition_names(actor: Actor[object], partitions: Partitions) -> tuple[str, ...]:
    """Return the names of an actor's partitions: their tokens, or ``all`` for a GLOBAL actor."""
    return (WHOLE,) if actor.scope is Scope.GLOBAL else partitions.tokens(actor.scope is Scope.SESSION)


def lineage(actor: Actor[object], partition: str, partitions: Partitions) -> tuple[str, ...]:
    """Return the names of the partitions that a partition was divided from, the oldest first, and its own."""
    if actor.scope is Scope.GLOBAL:
        return (partition,)
    return partitions.lineage(partition, actor.scope is Scope.SESSION)


def fence_filter(actor: Actor[object], partition: str) -> str:
    """Return the filter over everything that the owner of one partition may have appended there."""
    agent, session = "*", "*"
    if actor.scope is Scope.SESSION:
        session = partition
    elif actor.scope is Scope.AGENT:
        agent = partition
    return f"{STORED_ROOT}.{agent}.{session}.{main_prefix(actor)}.>"


@lru_cache(maxsize=1 << 12)
def partition_filters(actor: Actor[object], partition: str, partitions: Partitions) -> tuple[str, ...]:
    """Return the filters over one partition's whole view: what it consumes and what it published.

    Where the log was repartitioned, they cover the partitions that this one was divided from.
    """
    return _narrowed(actor, lineage(actor, partition, partitions), (*consumed_filters(actor), *own_filters(actor)))


def partition_own_filters(actor: Actor[object], partition: str, partitions: Partitions) -> tuple[str, ...]:
    """Return the filters over all that one partition, and those that it was divided from, publish."""
    return _narrowed(actor, lineage(actor, partition, partitions), own_filters(actor))


def _narrowed(actor: Actor[object], names: tuple[str, ...], filters: tuple[str, ...]) -> tuple[str, ...]:
    if actor.scope is Scope.GLOBAL:
        return without_overlap(filters)
    narrowed = []
    for candidate in filters:
        rest = candidate.split(".", 3)[3]
        for token in (*names, NO_PARTITION):
            tokens = f"*.{token}" if actor.scope is Scope.SESSION else f"{token}.*"
            narrowed.append(f"{STORED_ROOT}.{tokens}.{rest}")
    return without_overlap(narrowed)


def own_filters(actor: Actor[object]) -> tuple[str, ...]:
    """Return the filters over all that an actor publishes, in every partition."""
    whole = [f"{STORED_ROOT}.*.*.{prefix}.>" for prefix in prefixes_of(actor.name)]
    bare = [topic_filter(entry.topic) for entry in owned_by(actor.name) if entry.topic.count(".") == 1]
    return (*whole, *bare)


def consumed_filters(actor: Actor[object]) -> tuple[str, ...]:
    """Return the filters over all that an actor consumes, in every partition."""
    return tuple(topic_filter(topic_of(event)) for event in actor.consumes)


def without_overlap(filters: Iterable[str]) -> tuple[str, ...]:
    """Drop duplicates and filters that a ``>`` filter among them covers: a consumer's filters may not overlap."""
    unique = sorted(set(filters))
    covers = [candidate[:-1] for candidate in unique if candidate.endswith(".>")]
    return tuple(
        candidate
        for candidate in unique
        if not any(candidate.startswith(cover) and candidate != f"{cover}>" for cover in covers)
    )


def partitions_of(actor: Actor[object], subject: str, partitions: Partitions) -> tuple[str, ...]:
    """Return the partitions of ``actor`` whose view a stored message belongs to.

    A message without the actor's key (an agent-wide event to a session-scoped actor) belongs to all of them. One of a
    partition that was divided since may belong to any of its parts: their views decide by its key.
    """
    if actor.scope is Scope.GLOBAL:
        return (WHOLE,)
    _, agent, session, _ = subject.split(".", 3)
    token = session if actor.scope is Scope.SESSION else agent
    if token == NO_PARTITION:
        return partition_names(actor, partitions)
    if token[1:2] != "-" and not partitions.former:  # counts that have never changed
        return (token,)
    return partitions.in_force(token, actor.scope is Scope.SESSION)


def routes(
    actors: Iterable[Actor[Any]], subject: str, partitions: Partitions
) -> Iterator[tuple[Actor[Any], str, bool]]:
    """Yield each (actor, partition) whose view a stored subject's messages belong to, and whether the actor owns them.

    Raises:
        ValueError: the subject is not a stored one.
    """
    topic, _, _ = split_stored(subject)
    prefix = topic.split(".")[1]
    for actor in actors:
        own = prefix in prefixes_of(actor.name)
        if own or topic in _topics(actor.consumes):
            for partition in partitions_of(actor, subject, partitions):
                yield actor, partition, own


@cache
def _topics(events: tuple[type[Event], ...]) -> frozenset[str]:
    # Cached: every message that a process reads is compared with every actor's list.
    return frozenset(map(topic_of, events))
