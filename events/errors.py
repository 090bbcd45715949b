"""Errors of the log, in families by what a caller does about them. Each class has a stable ``code``."""


class LogError(Exception):
    """Base of all errors of the log."""

    code = "log"


class Conflict(LogError):
    """The fence does not hold, since another writer appended: nothing was stored. Drop the state, recover, go on.

    A fence (``events.log.Fence``) is the condition of an append: the last message on some subjects is the one that the
    writer knows. ``last`` is the sequence of that message as the broker named it, None if it did not. A log that lost
    messages may name one that cannot be read any more, or 0.
    """

    code = "conflict"

    def __init__(self, message: str = "", last: int | None = None) -> None:
        super().__init__(message)
        self.last = last


class UnknownOutcome(LogError):
    """No answer in time: the append may or may not be stored, or may be stored later. Recover: the log shows which."""

    code = "unknown_outcome"


class Unavailable(LogError):
    """The broker cannot be reached, or answered that it cannot serve now. Nothing was stored. Retry later."""

    code = "unavailable"


class NoLeader(Unavailable):
    """A broker's cluster has no leader for this: most of its servers are away, or choose one. Nothing was stored."""


class NotPermitted(Unavailable):
    """The login lacks a right that this needs. Nothing was stored. A person must give it, or name another login."""

    code = "not_permitted"


class Refused(LogError):
    """The broker will never accept this (too large, malformed). Nothing was stored. Do not retry."""

    code = "refused"


class LogCut(LogError):
    """The log no longer holds what was read from it: its store was cut, or replaced by another.

    Everything read from it is in doubt: drop all of it, and read the log again.
    """

    code = "log_cut"


class Misconfigured(LogError):
    """The broker or the stream is not what this release needs. A person must act; the message says how."""

    code = "misconfigured"


class LedgerDamaged(LogError):
    """A ledger file is unreadable, cut or altered; the message says where."""

    code = "ledger_damaged"
