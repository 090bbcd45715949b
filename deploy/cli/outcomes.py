"""How a command may end: its exit statuses, and the two errors that commands themselves raise."""

GOOD, CHECK_FAILED, WRONG_USE, NOT_REACHABLE = 0, 1, 2, 3
"""Exit statuses: done; a check did not pass; options or files are wrong; the broker or the set is not there, or the
machine has run out of something: another attempt may succeed."""

BUG = 70
"""Exit status of an unexpected error (``EX_SOFTWARE``), which is a bug to report."""

INTERRUPTED = 130
"""Exit status of a command that was ended by Ctrl-C: 128 plus the number of SIGINT, as shells have it."""


class CheckFailed(Exception):
    """The command made a check, and it did not pass; the message says what was found."""

    code = "check_failed"


class WrongUse(Exception):
    """The options or arguments make no sense; the message says what would."""

    code = "wrong_use"
