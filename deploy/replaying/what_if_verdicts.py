"""The verdict on a what-if, in words: whether too many exchanges change, or why that is not known. Pure."""

from collections.abc import Iterator

from events.replay.verifying.unread_causes import UNREAD_THEN, UNREADABLE_EVENT
from events.replay.whatif import Report
from schemas.settings.settings_fault import UNREADABLE_SETTINGS

_REASON_TEXTS = {"sealed": "words sealed, forgotten or redacted"}


def headline(report: Report) -> str:
    """Return how many of the compared exchanges end differently, and how many could not be compared."""
    text = f"{report.changed:,} of {report.compared:,} exchanges end otherwise ({report.share:.1%})"
    return f"{text}; of {report.held:,} more that cannot be told" if report.held else text


def complaint(report: Report, percent: float) -> str:
    """Return why more than ``percent`` of the exchanges end, or may end, differently; else empty.

    An exchange that could not be compared counts as one that may end differently.
    """
    if report.share * 100 > percent:
        return f"{headline(report)}: more than {percent:g}%"
    if reason := why_nothing_compared(report):
        return f"nothing can be said of these settings: {reason}"
    if report.max_share * 100 > percent:
        text = f"{headline(report)}, so that it may be {report.max_share:.1%} in all, more than {percent:g}%"
        return f"{text}: {redecided(report)}"
    return ""


def why_nothing_compared(report: Report) -> str:
    """Return why the report says nothing about the changed settings; empty if it says something."""
    if report.all_measured:
        return "no decision reads what is changed: running processes measure with it, and what they measured stands"
    if report.unanswered:
        names = ", ".join(report.unanswered)
        return f"no decision of {names} could be made anew: {redecided(report)}"
    if not report.compared:
        return f"of {report.exchanges:,} exchanges none could be compared: {redecided(report)}"
    return ""


def redecided(report: Report) -> str:
    """Return how many decisions were made again, and why the others were taken from the record."""
    held = report.held_by_reason
    text = f"{report.decided:,} of {report.decided + sum(held.values()):,} decisions made anew"
    reasons = (f"{count:,} not re-decided: {reason_text(reason)}" for reason, count in held.items())
    return ", ".join((text, *reasons))


def measured_setting_warnings(report: Report) -> Iterator[str]:
    """Yield, for each changed setting that live processes measure with, which effects of the change cannot show."""
    for name, readers in report.measured.items():
        why = "what they measured is taken from the record, whatever it is set to"
        if readers == "alone":
            yield f"{name} shows nothing: running processes alone read it, and {why}"
        else:
            yield f"{name} shows in decisions alone: running processes read it too, and {why}"


def uncompared_texts(report: Report) -> Iterator[str]:
    """Yield why the report says nothing about some or all exchanges, or about the changed settings."""
    if nothing := why_nothing_compared(report):
        yield f"nothing can be said of these settings: {nothing}"
    elif report.held:
        yield f"of {report.held:,} of {report.exchanges:,} exchanges nothing can be told: {redecided(report)}"
    for code, count in report.unreadable.items():
        yield f"{'1 event' if count == 1 else f'{count:,} events'} cannot be read by this release: {code}"


def reason_text(reason: str) -> str:
    """Return as a text why a decision could not be made again, and what to do about it if anything can be done."""
    if reason.startswith(UNREADABLE_SETTINGS):
        text = reason.removeprefix(f"{UNREADABLE_SETTINGS}: ")
        setting = text.partition(" = ")[0] if " = " in text else f"{text.partition(':')[0]}.SETTING"
        return (
            f"settings that this release does not take ({text}): the release that recorded them can, or one that has "
            f"what they name; `what-if --set {setting}=VALUE` decides anew with another value"
        )
    if reason.startswith(UNREADABLE_EVENT):
        what = reason.removeprefix(f"{UNREADABLE_EVENT}: ")
        return f"events that this release cannot read ({what}): use the release that wrote them, or a later one"
    if reason.startswith(UNREAD_THEN):
        what = reason.removeprefix(f"{UNREAD_THEN}: ")
        return f"failures of a release that could not read what this one can ({what})"
    return _REASON_TEXTS.get(reason, reason)
