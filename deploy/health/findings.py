"""The result of a check of ``neuraxis doctor``."""

from enum import StrEnum

import msgspec

from events.errors import LogError, NoLeader, NotPermitted, Unavailable


class Verdict(StrEnum):
    """How a check came out."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"
    SKIP = "n/a"


class Finding(msgspec.Struct, frozen=True):
    """The result of one check: what was found, and what to do about it (empty when all is well)."""

    check: str
    verdict: Verdict
    detail: str
    remedy: str = ""


OTHER_USER = "look with a login that may: --context of an operator, or --creds"
"""What to do where a login lacks a right that a check needs."""

ASK_BROKER = "the checks of the broker (broker, jetstream, storing, servers) say why; then look again"
"""What to do where a check's question to the broker got no answer, or a refusal."""


def lacks_right(wrong: LogError) -> bool:
    """Return whether something failed since the login lacks a right."""
    return isinstance(wrong, NotPermitted) or "permissions violation" in str(wrong).lower()


def not_made(check: str, what: str, wrong: LogError, *, connected: bool = True, if_gone: str = "") -> Finding:
    """Return the finding of a check that could not be made.

    Args:
        check: Its name.
        what: What it would have done, as in "this user may not ...".
        wrong: Why that was not possible.
        connected: Whether the broker is still there: it may have gone away in the middle of the checks.
        if_gone: What to do where the broker no longer has what was asked for, which fails; empty: that is not told
            from a broker that does not answer, which is a warning.
    """
    if lacks_right(wrong):
        return Finding(check, Verdict.WARN, f"this user may not {what}: {wrong}", OTHER_USER)
    seen = f"nobody can {what} now: {wrong}"
    if if_gone and connected and isinstance(wrong, Unavailable) and not isinstance(wrong, NoLeader):
        return Finding(check, Verdict.FAIL, seen, if_gone)
    return Finding(check, Verdict.WARN, seen, ASK_BROKER)
