"""One row of the catalogue: all facts about a subject, in one place."""

from enum import StrEnum
from typing import Literal, TypeVar

import msgspec

from schemas.actor import Scope
from schemas.event import ROOT, Configured, Event, Failed, topic_of

E = TypeVar("E", bound=Event)


class Severity(StrEnum):
    """How urgently an event needs a person."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"


class Grouping(msgspec.Struct, frozen=True, kw_only=True):
    """How alerts of a subject's events are grouped, and what they contain.

    Attributes:
        by_agent: Each agent has groups of its own.
        by_session: Each session has groups of its own.
        fields: Fields of the event, by dotted name: events with different values belong to different groups.
        copied_fields: Fields of the event that are copied into the alert (``Alert.figures``): numbers and codes, never
            people's words.
    """

    by_agent: bool = True
    by_session: bool = False
    fields: tuple[str, ...] = ()
    copied_fields: tuple[str, ...] = ()


Verdict = Literal["passes", "decides"]
"""An actor's verdict on an input. ``passes``: its stage lets the input go on. ``decides``: any other decision on it."""


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A subject of the catalogue.

    Attributes:
        owner: Who alone may publish it: an actor, or an entry point (``gateway``, ``operator``), which appends what
            comes from outside.
        scope: The keys it is about: SESSION events carry agent and session, AGENT events an agent, GLOBAL neither.
        meaning: What it says, in one line.
        sample: A valid event of it; doubles as documentation and as the contract test's input.
        version: Current version of its meaning.
        severity: Set when the event calls for an alert.
        grouping: How its alerts are grouped. None: by its scope; failures also by what failed and why.
        ended_by: The events that end the reported condition. Empty: it ends once the subject was quiet for a while.
        asks: The owner that it is a request to: an effector, or an actor that judges only on request.
        verdict: Set when the event is its actor's verdict on an input.
        spontaneous: No message leads to it: its actor's shell appends it (start-up, timers).
    """

    owner: str
    scope: Scope
    meaning: str
    sample: Event
    version: int = 1
    severity: Severity | None = None
    grouping: Grouping | None = None
    ended_by: tuple[type[Event], ...] = ()
    asks: str = ""
    verdict: Verdict | None = None
    spontaneous: bool = False

    @property
    def event(self) -> type[Event]:
        """The struct of its body."""
        return type(self.sample)

    @property
    def topic(self) -> str:
        """The public subject."""
        return topic_of(self.event)

    @property
    def prefix(self) -> str:
        """The first token after the root; the owner's subjects start with it."""
        return self.topic.split(".")[1]


def own_events(owner: str, prefix: str = "") -> tuple[type[Configured], type[Failed]]:
    """Return the types of the two events that every actor has: its settings, and a message that it could not decide.

    Args:
        owner: The actor; its module of the vocabulary has its name.
        prefix: The first token of their subjects, where that is not the owner's name.
    """
    name, stem = owner.replace("_", "-"), f"{ROOT}.{prefix or owner}"
    return (
        _of_owner(Configured, owner, f"{stem}.configured", f"The settings of {name}, from here on."),
        _of_owner(Failed, owner, f"{stem}.failed", f"A message that {name} could not decide."),
    )


def _of_owner(base: type[E], owner: str, topic: str, meaning: str) -> type[E]:
    kind = msgspec.defstruct(
        owner.title().replace("_", "") + base.__name__,
        [],
        bases=(base,),
        module=f"schemas.vocabulary.{owner}",
        namespace={"__doc__": meaning},
        frozen=True,
        kw_only=True,
        tag=topic,
    )
    assert issubclass(kind, base)
    return kind


def own_entries(
    configured: type[Configured],
    failed: type[Failed],
    *,
    owner: str,
    scope: Scope,
    then: str,
    failed_topic: str = "forged_id.input.received",
    failed_scope: Scope | None = None,
    severity: Severity = Severity.CRITICAL,
) -> tuple[Entry, Entry]:
    """Return the entries of the two events that every actor has: its settings, and what it could not decide.

    Args:
        configured: Its event with its settings.
        failed: Its event about a message that it could not decide.
        owner: The actor.
        scope: What its partitions are keyed by.
        then: What happens to an exchange that waits for the message that could not be decided, as the end of a
            sentence.
        failed_topic: The public subject of a message that it consumes, for the sample.
        failed_scope: Scope of a failure, where it differs from ``scope``: a failure about an exchange has a session.
        severity: How urgently a failure needs a person.
    """
    name = owner.replace("_", "-").capitalize()
    return (
        Entry(
            owner=owner,
            scope=scope,
            meaning=f"The settings of {owner.replace('_', '-')}, from here on.",
            sample=configured(settings={}, settings_hash="0" * 64, behaviour=1),
            spontaneous=True,
        ),
        Entry(
            owner=owner,
            scope=failed_scope or scope,
            meaning=f"{name} could not decide a message; {then}.",
            sample=failed(reason="decider_raised", error="ValueError", failed_seq=7, failed_topic=failed_topic),
            severity=severity,
        ),
    )
