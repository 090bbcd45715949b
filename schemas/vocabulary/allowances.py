"""What people allow in spite of the guards. Owner: ``operator``, the entry point of people's orders."""

from typing import Annotated

import msgspec

from schemas.actor import Scope
from schemas.entry import Entry, Severity
from schemas.event import Event, Personal
from schemas.vocabulary.precedents import ShortText

Why = Annotated[str, msgspec.Meta(min_length=1, max_length=2_000)]
"""A person's reason, for the record."""

Allowed = Annotated[Personal, msgspec.Meta(max_length=16_000)]
"""A text or phrase that is allowed."""


class AllowanceRecorded(Event, frozen=True, kw_only=True, tag="forged_id.operator.allowance_recorded"):
    """A text, or a phrase in any text, that no guard of an agent objects to from here on; ``allowance`` names it.

    ``text`` is a whole text or layer, whatever its case and white space; ``phrase`` a phrase of whole words, which
    the guards ignore wherever it occurs; the text around it is judged. One of the two is given. It replaces
    an allowance of the same name. ``by`` and ``why`` are for the record.
    """

    allowance: ShortText
    text: Allowed = ""
    phrase: Allowed = ""
    by: ShortText
    why: Why


class AllowanceWithdrawn(Event, frozen=True, kw_only=True, tag="forged_id.operator.allowance_withdrawn"):
    """An allowance is not in force any more; ``by`` and ``why`` are for the record."""

    allowance: ShortText
    by: ShortText
    why: Why


ENTRIES = (
    Entry(
        owner="operator",
        scope=Scope.AGENT,
        meaning="A person allows a text, or a phrase in any text, in spite of the guards.",
        sample=AllowanceRecorded(allowance="a-1", phrase="ignore previous", by="ann", why="a button of our editor"),
        severity=Severity.INFO,
    ),
    Entry(
        owner="operator",
        scope=Scope.AGENT,
        meaning="What a person allowed counts no more.",
        sample=AllowanceWithdrawn(allowance="a-1", by="ann", why="the button is gone"),
        severity=Severity.INFO,
    ),
)
