"""Answers. Owner: ``responder``, the only writer of an exchange's end."""

from typing import Literal

from schemas.actor import Scope
from schemas.entry import Entry, Severity
from schemas.event import Configured, Event, Failed, Personal
from schemas.vocabulary.router import Mode

Stage = Literal["REFLEX", "INTUITION", "COHERENCE", "BREAKER", "ARBITER", "DELIBERATIVE"]
Action = Literal["BLOCKED", "REJECTED", "WITHHELD", "EXECUTED", "FAILED"]


class ResponseEmitted(Event, frozen=True, kw_only=True, tag="forged_id.response.emitted"):
    """The end of an exchange: exactly one for every accepted input.

    ``stage`` says which stage answered, ``action`` what it did, ``reason`` why (a pattern's name, an error code, a
    mode). ``first_mode`` is what the router chose first, ``mode`` what was answered in. ``backend`` wrote the text.
    """

    stage: Stage
    action: Action
    reason: str
    mode: Mode | None
    first_mode: Mode | None
    response: Personal
    backend: str
    reply_to: str = ""


class ResponderConfigured(Configured, frozen=True, kw_only=True, tag="forged_id.response.configured"):
    """The settings of a responder partition."""


class ResponderFailed(Failed, frozen=True, kw_only=True, tag="forged_id.response.failed"):
    """A message that the responder could not decide."""


ENTRIES = (
    Entry(
        event=ResponseEmitted,
        owner="responder",
        scope=Scope.SESSION,
        meaning="The one end of an exchange: which stage answered, what it did, and the answer.",
        sample=ResponseEmitted(
            stage="DELIBERATIVE",
            action="EXECUTED",
            reason="RESPOND",
            mode="RESPOND",
            first_mode="RESPOND",
            response="No language model is attached.",
            backend="composer",
        ),
    ),
    Entry(
        event=ResponderConfigured,
        owner="responder",
        scope=Scope.SESSION,
        meaning="A responder partition decides with these settings from here on.",
        sample=ResponderConfigured(settings={"backend": "composer"}, settings_hash="0" * 64, behaviour=1),
        spontaneous=True,
    ),
    Entry(
        event=ResponderFailed,
        owner="responder",
        scope=Scope.SESSION,
        meaning="The responder could not decide a message; the clock's deadline ends its exchange.",
        sample=ResponderFailed(
            reason="decider_raised", error="ValueError", failed_seq=7, failed_topic="forged_id.router.mode_selected"
        ),
        severity=Severity.CRITICAL,
    ),
)
