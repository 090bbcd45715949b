"""Feedback of applications on how an exchange turned out. Owner: ``gateway``, the entry point that accepts it."""

from functools import partial
from typing import Annotated

import msgspec

from schemas.actor import Scope
from schemas.entry import Entry, Grouping, Severity
from schemas.event import Event, Personal
from schemas.vocabulary.router import Mode

Reward = Annotated[float, msgspec.Meta(ge=-1.0, le=1.0)]
"""How good an exchange was: 1 as good as can be, -1 as bad, 0 neither."""


class FeedbackGiven(Event, frozen=True, kw_only=True, tag="forged_id.feedback.given"):
    """Somebody says how an exchange was, which may have ended long ago.

    ``mode`` is the recorded mode of its answer; None where no mode was chosen for it. ``reward`` and ``harmful`` are
    None where they were not given.
    """

    mode: Mode | None = None
    reward: Reward | None = None
    harmful: bool | None = None
    comment: Personal = ""


class HarmReported(Event, frozen=True, kw_only=True, tag="forged_id.feedback.harm_reported"):
    """Somebody says that an exchange did harm: an operator's verdict makes a precedent of its input.

    ``mode`` and ``reward`` are as in ``feedback.given``.
    """

    mode: Mode | None = None
    reward: Reward | None = None
    comment: Personal = ""


_entry = partial(Entry, owner="gateway", scope=Scope.SESSION)

ENTRIES = (
    _entry(
        meaning="Somebody says how an exchange was; the router learns from it whether its choice of mode was right.",
        sample=FeedbackGiven(mode="RESPOND", reward=0.8, comment="just what I needed"),
    ),
    _entry(
        meaning="Somebody says that an exchange did harm; an operator's verdict makes a precedent of its input.",
        sample=HarmReported(mode="RESPOND", reward=-1.0, comment="it told me to take twice the dose"),
        severity=Severity.WARNING,
        grouping=Grouping(by_session=True),
    ),
)
