"""Errors of the log, in families by what a caller does about them. Each class has a stable ``code``."""


class LogError(Exception):
    """Base of all errors of the log."""

    code = "log"


class Conflict(LogError):
    """Another writer appended behind the fence: nothing was stored. Drop the state, recover, go on."""

    code = "conflict"


class UnknownOutcome(LogError):
    """No answer in time: the append may or may not be stored, or may be stored later. Recover; the log tells."""

    code = "unknown_outcome"


class Unavailable(LogError):
    """The broker cannot be reached, or answered that it cannot serve now. Nothing was stored. Retry later."""

    code = "unavailable"


class Refused(LogError):
    """The broker refuses this for good (too large, no permission, malformed). Nothing was stored. Do not retry."""

    code = "refused"


class Misconfigured(LogError):
    """The broker or the stream is not what this release needs. A person must act; the message says how."""

    code = "misconfigured"


class LedgerDamaged(LogError):
    """A ledger file is unreadable, cut or altered; the message says where."""

    code = "ledger_damaged"
