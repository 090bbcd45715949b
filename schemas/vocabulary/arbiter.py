"""The last gate before deliberation: deny, answer at once, let pass, or escalate. Owner: ``arbiter``.

Deliberation is what answers an input that no guard and no precedent has settled: memory, choice of a mode, and a model.
"""

from functools import partial
from typing import Literal

from schemas.actor import Scope
from schemas.entry import Entry, Grouping, Severity, own_entries, own_events
from schemas.event import Event, Milliseconds, Personal, Unit


class ArbiterDenied(Event, frozen=True, kw_only=True, tag="forged_id.arbiter.denied"):
    """The exchange ends here.

    ``reason``: a confirmed constitutional risk; a harmful precedent that is similar enough to decide; or
    ``unknown_outcome``: intuition, which knows what similar inputs led to, has said nothing.
    """

    reason: Literal["constitutional_risk", "harmful_precedent", "unknown_outcome"]
    precedent: str
    similarity: Unit


class ArbiterImmediate(Event, frozen=True, kw_only=True, tag="forged_id.arbiter.immediate"):
    """An approved precedent answers at once."""

    precedent: str
    similarity: Unit
    answer: Personal


class ArbiterEscalated(Event, frozen=True, kw_only=True, tag="forged_id.arbiter.escalated"):
    """The exchange goes to deliberation, which must end within ``deadline_after_ms``.

    ``nearest`` is as in ``arbiter.passed``.
    """

    reason: Literal["no_precedent", "precedent_not_close", "precedent_without_answer"]
    nearest: str
    similarity: Unit
    deadline_after_ms: Milliseconds


class ArbiterPassed(Event, frozen=True, kw_only=True, tag="forged_id.arbiter.passed"):
    """Every guard let the input pass. Its sender goes on with it, so nothing is deliberated on here.

    ``nearest`` is the precedent most similar to the input, whatever its outcome; empty: there is none.
    """

    nearest: str
    similarity: Unit


ArbiterConfigured, ArbiterFailed = own_events("arbiter")

_entry = partial(Entry, owner="arbiter", scope=Scope.SESSION)

ENTRIES = (
    _entry(
        meaning="The arbiter ends the exchange as REJECTED.",
        verdict="decides",
        sample=ArbiterDenied(reason="harmful_precedent", precedent="p-1", similarity=0.8),
        severity=Severity.WARNING,
        grouping=Grouping(copied_fields=("reason", "similarity")),
    ),
    _entry(
        meaning="An approved precedent answers at once.",
        verdict="decides",
        sample=ArbiterImmediate(precedent="p-2", similarity=0.95, answer="Our office opens at nine."),
    ),
    _entry(
        meaning="The exchange goes to deliberation.",
        verdict="passes",
        sample=ArbiterEscalated(reason="no_precedent", nearest="", similarity=0.0, deadline_after_ms=5_000),
    ),
    _entry(
        meaning="Every guard let the input pass; who sent it goes on with it.",
        verdict="passes",
        sample=ArbiterPassed(nearest="p-3", similarity=0.4),
    ),
    *own_entries(
        ArbiterConfigured,
        ArbiterFailed,
        owner="arbiter",
        scope=Scope.SESSION,
        then="its exchange, if it has one, ends as FAILED",
        failed_topic="forged_id.coherence.passed",
    ),
)
