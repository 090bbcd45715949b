"""One row of the catalogue: all there is to say about a subject, said once."""

from enum import StrEnum

import msgspec

from schemas.actor import Scope
from schemas.event import Event, topic_of


class Severity(StrEnum):
    """How loudly an event calls for a person."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A subject of the catalogue.

    Attributes:
        event: The struct of its body.
        owner: The actor (or edge) that alone may publish it.
        scope: The keys it is about: SESSION events carry agent and session, AGENT events an agent, GLOBAL neither.
        meaning: What it says, in one line.
        sample: A valid instance; doubles as documentation and as the contract test's input.
        version: Current version of its meaning.
        severity: Set when the event calls for an alert.
        ended_by: The events that end the condition it tells of; none: it is over once it has gone quiet.
        spontaneous: No message leads to it: its actor's shell appends it (start-up, timers).
    """

    event: type[Event]
    owner: str
    scope: Scope
    meaning: str
    sample: Event
    version: int = 1
    severity: Severity | None = None
    ended_by: tuple[type[Event], ...] = ()
    spontaneous: bool = False

    @property
    def topic(self) -> str:
        """The public subject."""
        return topic_of(self.event)

    @property
    def prefix(self) -> str:
        """The first token after the root: what the owner publishes below."""
        return self.topic.split(".")[1]
