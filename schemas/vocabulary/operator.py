"""What a person orders about a session or an agent. Owner: ``operator``, the entry point of people's orders."""

from functools import partial
from typing import Literal

from schemas.actor import Scope
from schemas.entry import Entry, Grouping, Severity
from schemas.event import Event, Personal
from schemas.vocabulary.precedents import ShortText


class BreakerResetOrdered(Event, frozen=True, kw_only=True, tag="forged_id.operator.breaker_reset_ordered"):
    """A person orders a session's circuit breaker back to normal."""

    by: ShortText
    why: ShortText


class ForgetOrdered(Event, frozen=True, kw_only=True, tag="forged_id.operator.forget_ordered"):
    """A person orders words to be forgotten: those of the session it is addressed to, or one fact of the agent.

    ``key`` names the fact; empty for a session.
    """

    what: Literal["session", "fact"]
    key: Personal = ""
    by: ShortText
    why: ShortText


class BreakerRecoveryOrdered(Event, frozen=True, kw_only=True, tag="forged_id.operator.breaker_recovery_ordered"):
    """A person orders a circuit breaker that an input has tripped (VIOLATED) to begin a recovery attempt now."""

    by: ShortText
    why: ShortText


_entry = partial(Entry, owner="operator", scope=Scope.SESSION)

ENTRIES = (
    _entry(
        meaning="A person orders a session's circuit breaker back to normal.",
        sample=BreakerResetOrdered(by="ann", why="false alarm, reviewed"),
        severity=Severity.INFO,
        grouping=Grouping(by_session=True),
    ),
    _entry(
        meaning="A person orders a session's words, or one fact of an agent, to be forgotten.",
        sample=ForgetOrdered(what="session", by="ann", why="the person asked for it"),
    ),
    _entry(
        meaning="A person orders a violated session's circuit breaker to begin a recovery attempt now.",
        sample=BreakerRecoveryOrdered(by="ann", why="spoke with the customer"),
        severity=Severity.INFO,
        grouping=Grouping(by_session=True),
    ),
)
