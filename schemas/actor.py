"""The actor contract: what a decider is, and what it sees.

An actor is a record of plain functions over an immutable state. ``decide`` says which events a
message leads to, ``evolve`` folds a message (consumed or own) into the state. Both are pure: no
clock, no random source, no I/O, no environment. ``evolve`` is total: it never raises on any event of the actor's view.

An actor's view is the sequence of events that it consumes and of those that it emits, in the log's order. Its shell is
the code around it that reads and appends: ``actors.runtime``.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Generic, TypeVar

import msgspec

from schemas.availability import Availability
from schemas.event import Configured, Event, Failed
from schemas.settings.known_settings import known_part
from schemas.settings.settings_fault import settings_fault

NEWEST_BEHAVIOUR = 2**31 - 1
"""The behaviour number of a message before which no ``configured`` was recorded: the newest code decides it."""

MISSING_BEHAVIOUR = "behaviour_"
"""Beginning of the reason for which decisions cannot be made again: the behaviour they were made under is missing."""


class Scope(StrEnum):
    """Which key an actor's state is sharded by."""

    SESSION = "session"
    AGENT = "agent"
    GLOBAL = "global"


class Message(msgspec.Struct, frozen=True, gc=False):
    """An event at its position in an actor's view.

    For a consumed event ``seq`` is its stream sequence and ``time_ns`` the server's timestamp (Unix nanoseconds). No
    other "now" reaches a decision. An own event is folded at the position of its cause, and carries the sequence and
    timestamp of that cause. So live folding, before the append is acknowledged, and replay see the same.

    ``behaviour`` is the version of decisions in force at this position, as the actor's last ``configured`` recorded it.
    Live, it is the actor's own. In a log of an older release it is that release's, and ``decide`` and ``evolve`` then
    do what that release did. ``models`` are the names of the trained models that the recorded decision of this message
    used; it is empty while the decision is made live.
    """

    event: Event
    seq: int
    id: str
    time_ns: int
    agent: str = ""
    session: str = ""
    exchange: str = ""
    behaviour: int = NEWEST_BEHAVIOUR
    models: tuple[str, ...] = ()

    @property
    def session_key(self) -> str:
        """The key of its session's own state; see :func:`session_key`."""
        return session_key(self.agent, self.session)


def session_key(agent: str, session: str) -> str:
    """Return the key of a session's own state. It includes the agent: two agents may have sessions of the same name."""
    return f"{agent}\n{session}"


class Emission(msgspec.Struct, frozen=True):
    """An event with another address (agent, session, exchange) than the message that led to it; ``None`` inherits."""

    event: Event
    agent: str | None = None
    session: str | None = None
    exchange: str | None = None


class Timer(msgspec.Struct, frozen=True):
    """The earliest event that an actor emits because time has passed, not because of a message.

    Due at ``due_ns`` (Unix nanoseconds); ``cause`` is the id of the message that set it.
    """

    due_ns: int
    cause: str
    emission: Emission


S = TypeVar("S")
T = TypeVar("T")


def with_settings(state: S, settings: Any) -> S:
    """Return a state with these settings in force; a state without settings is returned unchanged."""
    if not isinstance(state, msgspec.Struct) or "settings" not in state.__struct_fields__:
        return state
    return msgspec.structs.replace(state, settings=settings)


@dataclass(frozen=True, slots=True)
class Actor(Generic[S]):
    """A decider and what the runtime must know to run it.

    Attributes:
        name: Owner name in the catalogue; its events' subjects start with one of the owner's prefixes.
        scope: The key its state is sharded by, hence which partition token of a subject (the agent's or the session's)
            names its partition; see ``schemas.subjects``.
        consumes: The event types it reads, besides its own.
        state_type: Type of its state, for snapshots.
        settings_type: A frozen msgspec struct whose defaults are the default settings.
        initial: Makes the state of a partition in which nothing has happened yet.
        decide: (state before the message, message) -> the events it leads to.
        evolve: (state, message) -> next state, over consumed and own messages alike; see :meth:`fold`.
        configured: Its own ``Configured`` event type, by the catalogue.
        failed: Its own ``Failed`` event type, by the catalogue.
        behaviour: Version of its decisions; raised when a change alters decisions. The decider reads
            ``message.behaviour``, and keeps the code of each older version beside the new.
        reconfigure: (state, recorded settings) -> the state under them. By default they replace the state's field
            ``settings``. An actor has its own where its other fields must change with the settings.
        oldest: The oldest behaviour whose code is still kept. Decisions of still older ones cannot be verified.
        timer: For actors that emit events at set times: state -> the earliest due event, or None.
        on_availability: For an actor that watches the others: (state, what its shell has measured of them) -> the
            events to record about that, each marked ``spontaneous`` in the catalogue. Pure. Decisions use only the
            recorded events.
        log_lines: (own event, milliseconds its decision took) -> lines for the log of the worker that stored it. Pure,
            and without any person's words.
        warm: For actors whose decisions need something that is built at first use (an index, an automaton, a model):
            builds it before the next decision on a state needs it. It changes no state and no event. The shell calls it
            outside the decision loop, after a partition has recovered and before its worker leads it.
        evicts_cache: Consumed events after which ``warm`` has to run again; decisions wait for that.
        models: For actors that ask trained models: own event -> the names of the models that were used.
        missing_model: For actors that ask trained models: own event -> the name of a model that was used and that this
            process does not have, or empty. Verification cannot make such a decision again, and reports it.
        in_background: Whether no exchange waits for what it decides: it observes, learns or regulates. The shell lets
            it decide when nothing more urgent is to be done, or in turn with urgent work once a message has waited for
            half a second. The order of its messages stays that of the log.
        led_apart_from: The name of an actor of the same scope that has much work for the same keys. Where several
            processes run both actors, the two partitions of one name are led by different processes.
    """

    name: str
    scope: Scope
    consumes: tuple[type[Event], ...]
    state_type: type[S]
    settings_type: type[msgspec.Struct]
    initial: Callable[[], S]
    decide: Callable[[S, Message], Iterable[Event | Emission]]
    evolve: Callable[[S, Message], S]
    configured: type[Configured] = field(init=False)
    failed: type[Failed] = field(init=False)
    behaviour: int = 1
    oldest: int = 1
    reconfigure: Callable[[S, Any], S] = with_settings
    timer: Callable[[S], Timer | None] | None = None
    on_availability: Callable[[S, Availability], Iterable[Event]] | None = None
    log_lines: Callable[[Event, float], Iterable[str]] | None = None
    warm: Callable[[S], None] | None = None
    evicts_cache: tuple[type[Event], ...] = ()
    models: Callable[[Event], tuple[str, ...]] | None = None
    missing_model: Callable[[Event], str] | None = None
    in_background: bool = False
    led_apart_from: str = ""

    def __post_init__(self) -> None:
        # Imported here, since the catalogue imports this module.
        from schemas.catalogue import configuration_of, failure_of

        object.__setattr__(self, "configured", configuration_of(self.name))
        object.__setattr__(self, "failed", failure_of(self.name))

    def fold(self, state: S, message: Message) -> S:
        """Return the state after a message: as ``evolve`` says, and with the settings that an own ``configured`` holds.

        Settings of another release that this one cannot read change nothing.
        """
        state = self.evolve(state, message)
        if not isinstance(message.event, self.configured):
            return state
        settings = readable_settings(message.event, self.settings_type)
        return state if settings is None else self.reconfigure(state, settings)

    def undecidable(self, configured: Configured | None, *, latest: bool = False) -> str:
        """Return why decisions cannot be made again under the recorded settings and behaviour; empty if they can.

        This release may have no branch for the behaviour, or may not accept the settings. ``latest``: today's behaviour
        replaces the recorded one.
        """
        if configured is None:
            return ""
        if not latest and not self.oldest <= configured.behaviour <= self.behaviour:
            return f"{MISSING_BEHAVIOUR}{configured.behaviour}"
        return settings_fault(self.name, configured.settings, self.settings_type)


def settings_of(configured: Configured, settings_type: type[Any]) -> Any:
    """Rebuild a settings struct from a recorded ``Configured`` event; settings that this release removed are ignored.

    Raises:
        msgspec.ValidationError: this release cannot read them.
    """
    try:  # Usually this release wrote them. To look for removed settings first would take fifty times as long.
        return msgspec.convert(configured.settings, settings_type)
    except msgspec.ValidationError:
        return msgspec.convert(known_part(configured.settings, settings_type), settings_type)


def readable_settings(configured: Configured, settings_type: type[T]) -> T | None:
    """Rebuild settings as :func:`settings_of` does; None for those of another release that this one cannot read.

    For folds: a fold must not fail, so it keeps the settings in force instead.
    """
    try:
        return settings_of(configured, settings_type)  # type: ignore[no-any-return]
    except msgspec.ValidationError:
        return None
