"""Decisions about messages that one release can read and another cannot: whoever lacks the message cannot make them
again.

- This release cannot read a message of a newer version, and a newer release decided on it. What that decision said, and
  what it left in the state, is not known here: later decisions on that state may come out otherwise for this alone.
- An older release could not read a message that this one can, and recorded that as its failure.

A failure that is missing is a difference, though. A release that cannot read a message records a failure. So where this
very release decided that a message leads to nothing, as ``ce-build`` of the next event says, that is in doubt: the
failure must be there, unless the log shows elsewhere that workers of this version could read such messages.
"""

from collections.abc import Collection, Sequence
from functools import cache
from importlib.metadata import version
from typing import Any, NamedTuple
from urllib.parse import unquote

from events.decoding import Recorded, Unreadable, address_of
from events.partition_fold import Delivery, Processed
from events.replay.sources import Source
from schemas.actor import Actor, Scope
from schemas.catalogue import CATALOGUE
from schemas.envelope import VERSION
from schemas.errors import UNREADABLE, UnknownVersion
from schemas.event import Failed
from schemas.subjects import EVERYTHING, split_stored, topic_filter

UNREADABLE_EVENT = "unreadable_event"
"""Beginning of the reason for unverified decisions that rest on a message which this release cannot read."""

UNREAD_THEN = "unread_then"
"""Beginning of the reason for unverified failures of a release that could not read the message."""

_ALL = ("", "")
"""Stands for every session and agent of a partition."""


class Kind(NamedTuple):
    """Messages of a subject and version, and the release that decided on them; empty if it is not known."""

    topic: str
    version: str
    release: str


@cache
def this_release() -> str:
    """Return the version of the code, as workers of this release record it in ``ce-build``."""
    return version("neuraxis")


def release_in(build: str) -> str:
    """Return the version of the code that a ``ce-build`` names, without the hash of the settings; empty if unknown."""
    return build.rpartition("+")[0] or build


def is_of_newer_version(delivery: Delivery) -> bool:
    """Whether a message has a version that only a newer release knows."""
    return isinstance(delivery, Unreadable) and delivery.code == UnknownVersion.code and _is_newer(delivery)


def _is_newer(delivery: Unreadable) -> bool:
    entry = CATALOGUE.get(split_stored(delivery.stored.subject)[0])
    written = delivery.stored.headers.get(VERSION, "")
    return entry is not None and written.isascii() and written.isdecimal() and int(written) > entry.version


def kind_of(delivery: Unreadable, own: Recorded | None) -> Kind:
    """Return a message's kind, and the release that wrote an event about it or behind it."""
    release = release_in(own.envelope.build) if own is not None else ""
    return Kind(split_stored(delivery.stored.subject)[0], delivery.stored.headers.get(VERSION, ""), release)


def unreadable_reason(delivery: Unreadable) -> str:
    """Return the reason for which a decision about a message that cannot be read is not made again."""
    topic, written = split_stored(delivery.stored.subject)[0], delivery.stored.headers.get(VERSION, "")
    what = f" of version {written}" if delivery.code == UnknownVersion.code else f" ({delivery.code})"
    return f"{UNREADABLE_EVENT}: {topic}{what}"


def unread_then_reason(topic: str, code: str) -> str:
    """Return the reason for which a failure to read a message, which can be read today, is not made again."""
    return f"{UNREAD_THEN}: {topic} ({code})"


class StateGaps:
    """What a partition's state lacks, since messages that others decided on cannot be read here.

    A state is kept by session in an actor of sessions, and by agent in one of agents; so what a message leaves there is
    lacking for its own session or agent alone. A message without one may matter to all.
    """

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._reasons: dict[tuple[str, str], str] = {}

    def copy(self) -> "StateGaps":
        """Return another object with the same notes."""
        other = StateGaps(self._scope)
        other._reasons = dict(self._reasons)
        return other

    def note(self, delivery: Delivery, reason: str) -> None:
        """Note that the state lacks a message."""
        self._reasons.setdefault(self._key(delivery), reason)

    @property
    def first_reason(self) -> str:
        """Why any part of the state may be another; empty if nothing is lacking."""
        return next(iter(self._reasons.values()), "")

    def reason(self, delivery: Delivery) -> str:
        """Return why the state that a message is decided on may be another; empty if nothing is lacking there."""
        if not self._reasons or self._key(delivery) == _ALL:
            return self.first_reason
        return self._reasons.get(_ALL) or self._reasons.get(self._key(delivery), "")

    def _key(self, delivery: Delivery) -> tuple[str, str]:
        agent, session = address_of(delivery)
        if self._scope is Scope.SESSION and session:
            return agent, session
        return (agent, "") if self._scope is Scope.AGENT else _ALL


class UnreadCauses:
    """Follows one partition of an actor through a replay."""

    def __init__(self, actor: Actor[Any]) -> None:
        self._actor = actor
        self._gaps = StateGaps(actor.scope)
        # Which releases were seen to read which messages that this one cannot.
        self.readers: set[Kind] = set()

    def copy(self) -> "UnreadCauses":
        """Return another object with the same notes."""
        other = UnreadCauses(self._actor)
        other._gaps, other.readers = self._gaps.copy(), set(self.readers)
        return other

    def reason(self, processed: Processed, shown_by: Recorded | None) -> str:
        """Return why a decision cannot be made again, or nothing; called once for each, in order.

        ``shown_by`` is the recorded event that shows that the message was decided; None if there is none.
        """
        delivery = processed.delivery
        if isinstance(delivery, Recorded):
            return (
                self._failed_reason(delivery, processed.recorded) if processed.recorded else ""
            )  # mostly there is none
        if not is_of_newer_version(delivery) or _failed_to_read(processed.recorded, UnknownVersion.code):
            return ""
        # Whichever release decided, what it left in the state is not known here.
        reason = unreadable_reason(delivery)
        self._gaps.note(delivery, reason)
        kind = kind_of(delivery, processed.recorded[0] if processed.recorded else shown_by)
        if processed.recorded:
            self.readers.add(kind)
            return reason
        # Without a later event, it is not known whether the message was decided at all.
        return reason if shown_by is None or kind.release not in ("", this_release()) else ""

    def state_reason(self, delivery: Delivery | None = None) -> str:
        """Return why a decision may come out otherwise, although it is made again: its state lacks a message.

        Without a message: why any decision may.
        """
        return self._gaps.first_reason if delivery is None else self._gaps.reason(delivery)

    def _failed_reason(self, delivery: Recorded, recorded: Sequence[Recorded]) -> str:
        failure = _failed_to_read(recorded, *UNREADABLE)
        if failure is None or (release := release_in(failure.envelope.build)) == this_release():
            return ""
        reason = getattr(failure.message.event, "reason", "")
        # Every release reads the first version of an event. A release that did not record its version may be this one.
        could_not = delivery.envelope.version > 1 if reason == UnknownVersion.code else bool(release)
        return unread_then_reason(delivery.envelope.topic, reason) if could_not else ""


def _failed_to_read(recorded: Sequence[Recorded], *codes: str) -> Recorded | None:
    """Return the failure among a decision's events that was recorded for one of these reasons, or None."""
    events = ((own, own.message.event) for own in recorded)
    return next((own for own, event in events if isinstance(event, Failed) and event.reason in codes), None)


async def readers_of(source: Source, kinds: Collection[Kind]) -> frozenset[Kind]:
    """Return the releases that were seen to read such messages: an event that is no failure names one as its cause.

    Raises:
        LogError: the source cannot be read.
    """
    last = (await source.info()).last_seq
    wanted = {(kind.topic, kind.version) for kind in kinds}
    read: dict[str, tuple[str, str]] = {}
    async for batch in source.as_stored([topic_filter(topic) for topic in {topic for topic, _ in wanted}], 0, last):
        for stored in batch:
            kind = stored.headers.get("ce-type", ""), stored.headers.get(VERSION, "")
            if kind in wanted:
                read[stored.headers.get("ce-id", "")] = kind
    found: set[Kind] = set()
    async for batch in source.as_stored([EVERYTHING], 0, last):
        for stored in batch:
            cause = read.get(stored.headers.get("ce-cause", ""))
            entry = CATALOGUE.get(stored.headers.get("ce-type", ""))
            if cause is not None and not (entry is not None and issubclass(entry.event, Failed)):
                found.add(Kind(*cause, release_in(unquote(stored.headers.get("ce-build", "")))))
    return frozenset(found)
