"""Precedents: earlier situations and how they turned out. Owner: ``operator``, the entry point of people's orders."""

from typing import Annotated, Literal

import msgspec

from schemas.actor import Scope
from schemas.entry import Entry
from schemas.event import Event, Personal, Unit

ProposedAction = Literal["answer", "act", "withhold"]
"""What is proposed to do with an input. Withholding contradicts the other two."""

ShortText = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
"""A name or a reason: not empty, at most 200 characters."""


class PrecedentRecorded(Event, frozen=True, kw_only=True, tag="forged_id.precedent.recorded"):
    """A situation, what was done in it, and how that turned out; ``precedent`` names it within its agent.

    ``situation`` is the kind of situation, as an input names it. ``harm_level`` is 0 for a benign outcome; ``answer``
    an approved answer to the same situation, empty when there is none. ``by`` says who recorded it, ``why`` the reason,
    if one was given.
    """

    precedent: ShortText
    description: Personal
    situation: str = "general"
    action: ProposedAction = "answer"
    outcome: Literal["benign", "harmful"] = "benign"
    harm_level: Unit = 0.0
    answer: Personal = ""
    by: str = ""
    why: str = ""


class PrecedentWithdrawn(Event, frozen=True, kw_only=True, tag="forged_id.precedent.withdrawn"):
    """A precedent is not in force any more; ``by`` and ``why`` are for the record."""

    precedent: ShortText
    by: str
    why: str


ENTRIES = (
    Entry(
        owner="operator",
        scope=Scope.AGENT,
        meaning="A situation, what was done in it and how it turned out: precedents are what intuition learns from.",
        sample=PrecedentRecorded(
            precedent="p-1",
            description="asked for the administrator's password by phone",
            action="answer",
            outcome="harmful",
            harm_level=0.9,
            by="ann",
        ),
    ),
    Entry(
        owner="operator",
        scope=Scope.AGENT,
        meaning="A precedent counts no more from here on.",
        sample=PrecedentWithdrawn(precedent="p-1", by="ann", why="recorded by mistake"),
    ),
)
