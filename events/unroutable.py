"""Stored events that no actor of this release reads: their subject belongs to no event, or to a missing partition.

The log takes whatever a publisher writes below the subjects that its login may append to. A misspelt subject is stored
like any other, and no reader's filter matches it. Pure.
"""

from functools import lru_cache

import msgspec

from schemas.catalogue import CATALOGUE
from schemas.intake.nearest_name import nearest_name
from schemas.intake.strict import quoted_name
from schemas.subjects import NO_PARTITION, Partitions, split_stored

MOST_LISTED = 20
"""Subjects that a list of unroutable events holds at most; the events of further ones are only counted."""


class Unroutable(msgspec.Struct, frozen=True):
    """Events of one stored subject that no actor reads: why, how many, and the sequence of the first (0: not known)."""

    subject: str
    why: str
    events: int
    first_seq: int = 0


@lru_cache(maxsize=1 << 16)
def why_unroutable(subject: str, partitions: Partitions) -> str:
    """Return why no actor of this release reads the events of a stored subject; empty if some may."""
    try:
        topic, agent, session = split_stored(subject)
    except ValueError:
        return "it is no subject of stored events"
    if topic not in CATALOGUE:
        near = nearest_name(topic, CATALOGUE, cutoff=0.8)
        return f"this release has no event {quoted_name(topic)}" + (f": did you mean {near}?" if near else "")
    for token, of_sessions in ((agent, False), (session, True)):
        if token != NO_PARTITION and token not in _tokens(partitions, of_sessions):
            count = partitions.sessions if of_sessions else partitions.agents
            whose = "sessions" if of_sessions else "agents"
            return f"there is no partition {quoted_name(token)} of {whose}: there are {count}"
    return ""


@lru_cache(maxsize=64)
def _tokens(partitions: Partitions, of_sessions: bool) -> frozenset[str]:
    return frozenset(token for _, counts in partitions.generations for token in counts.tokens(of_sessions))


class UnroutableEvents:
    """Collects the events of a log that no actor reads; ``count`` counts all of them, ``most`` subjects are listed."""

    def __init__(self, partitions: Partitions, most: int = MOST_LISTED) -> None:
        self._partitions = partitions
        self._most = most
        self._found: dict[str, Unroutable] = {}
        self.count = 0

    def take(self, subject: str, events: int = 1, seq: int = 0) -> None:
        """Note events of a stored subject, the first of them at ``seq``, if no actor here reads them."""
        if not (why := why_unroutable(subject, self._partitions)):
            return
        self.count += events
        known = self._found.get(subject)
        if known is not None:
            self._found[subject] = msgspec.structs.replace(known, events=known.events + events)
        elif len(self._found) < self._most:
            self._found[subject] = Unroutable(subject, why, events, seq)

    @property
    def listed(self) -> tuple[Unroutable, ...]:
        """The first subjects of such events."""
        return tuple(self._found.values())
