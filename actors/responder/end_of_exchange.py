"""Builds the end of an exchange from what all ends have in common. Pure."""

from actors.responder.pending import Pending
from schemas.vocabulary.responder import Action, ResponseEmitted, Stage

COMPOSER, PRECEDENT, MODEL, UPSTREAM = "composer", "precedent", "llm", "upstream"
"""Who wrote an answer: the composer (fixed sentences), the person who recorded a precedent (an earlier situation, with
its answer), the language model that was asked, or the model of the sender of a forwarded input."""


def end_of(pending: Pending, stage: Stage, action: Action, reason: str, response: str) -> ResponseEmitted:
    """Return the end of an exchange, with the composer as its author."""
    return ResponseEmitted(
        stage=stage,
        action=action,
        reason=reason,
        mode=None,
        first_mode=pending.first_mode,
        response=response,
        backend=COMPOSER,
        reply_to=pending.reply_to,
    )
