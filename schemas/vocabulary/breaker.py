"""The trust circuit breaker of a session. Owner: ``breaker``.

A session has one timer: an event with ``wake_after_ms`` sets it anew, and 0 cancels it.
"""

from functools import partial
from typing import Literal

import msgspec

from schemas.actor import Scope
from schemas.entry import Entry, Grouping, Severity, own_entries, own_events
from schemas.event import Event, Unit, Wake

BreakerState = Literal["NORMAL", "VIOLATED", "RECOVERY", "TERMINATED"]
"""The state of a session's breaker; inputs are answered in NORMAL alone.

VIOLATED: a violation has switched processing off. RECOVERY: an attempt runs in which inputs can rebuild trust.
TERMINATED: the session is ended.
"""

Violation = Literal["role_confusion", "context_saturation"]
"""An input whose falsehood is too high, or is above half in a very long text."""

Stance = Literal["normal", "cautious", "guarded", "terminated"]
"""How careful the answers to a session are."""


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """Where a session stands after an event: state and trust before and after, the counts, and the derived stance.

    ``falsehood`` is that of the input that led to the event, else of the latest. ``violations`` counts those of the
    session, ``attempts`` the attempts to recover since the last success, ``attempt_turns`` the inputs of the running
    one.
    """

    state_before: BreakerState
    state: BreakerState
    trust_before: Unit
    trust: Unit
    falsehood: Unit
    violations: int
    attempts: int
    attempt_turns: int
    stance: Stance


class BreakerCleared(Event, frozen=True, kw_only=True, tag="forged_id.breaker.cleared"):
    """The input may be answered: the session is in NORMAL and nothing triggered."""

    standing: Standing


class BreakerTripped(Event, frozen=True, kw_only=True, tag="forged_id.breaker.tripped"):
    """A violation, which no earlier trust makes up for: processing is off. ``layer`` is the layer it was found in.

    Recovery starts by itself ``wake_after_ms`` later, unless an input or an operator starts it before.
    """

    violation: Violation
    layer: str
    standing: Standing
    wake_after_ms: Wake


class BreakerWithheld(Event, frozen=True, kw_only=True, tag="forged_id.breaker.withheld"):
    """The input is answered by a fixed notice only: processing is off.

    ``because`` is ``state`` where the session's state withholds it; the input then counts for trust. It does not count
    where it is ``unappraised`` (nothing of it could be appraised), or where a new session cannot be recorded any more
    (``record_full``).
    """

    standing: Standing
    because: Literal["state", "unappraised", "record_full"] = "state"


class BreakerRecoveryStarted(Event, frozen=True, kw_only=True, tag="forged_id.breaker.recovery_started"):
    """A recovery attempt began; ``by`` is ``input``, ``timer`` or ``operator``.

    Its timer replaces that of the violation.

    Unless it fails or inputs end it before, the attempt succeeds by itself ``wake_after_ms`` later.
    """

    by: Literal["input", "timer", "operator"]
    standing: Standing
    wake_after_ms: Wake = 0


class BreakerAttemptFailed(Event, frozen=True, kw_only=True, tag="forged_id.breaker.attempt_failed"):
    """A recovery attempt used up its turns without a violation: back to VIOLATED, which itself costs no trust."""

    standing: Standing
    wake_after_ms: Wake


class BreakerRecovered(Event, frozen=True, kw_only=True, tag="forged_id.breaker.recovered"):
    """The session is in NORMAL again: inputs rebuilt its trust (``input``), or it was calm for long (``timer``)."""

    standing: Standing
    by: Literal["input", "timer"] = "input"
    wake_after_ms: Wake = 0


class BreakerTerminated(Event, frozen=True, kw_only=True, tag="forged_id.breaker.terminated"):
    """The session is ended for good (an operator may reset it); ``reason`` is the rule that ended it.

    ``docs/decisions-explained.md`` says what each rule is; their limits are in ``actors.breaker.settings``. Where a
    violation led to it, ``violation`` says of which kind and ``layer`` where it was found.
    """

    reason: Literal[
        "attempts_used_up",
        "attempt_budget",
        "breakers_in_session",
        "recent_falsehood",
        "balance_trend",
        "refusal_share",
        "violation_count",
    ]
    standing: Standing
    violation: Violation | None = None
    layer: str = ""
    wake_after_ms: Wake = 0


class BreakerWarned(Event, frozen=True, kw_only=True, tag="forged_id.breaker.warned"):
    """A session in NORMAL is in danger: its trust is low, or one more bad input would break a rule and end it.

    ``danger`` is ``trust``, or the rule: one of those in ``breaker.terminated``.
    """

    danger: Literal["trust", "recent_falsehood", "balance_trend", "refusal_share"]
    standing: Standing


class BreakerCalmed(Event, frozen=True, kw_only=True, tag="forged_id.breaker.calmed"):
    """A session that was warned is out of danger."""

    standing: Standing


class BreakerFilled(Event, frozen=True, kw_only=True, tag="forged_id.breaker.filled"):
    """The record of terminated sessions is full: an input of an unknown session is withheld.

    ``terminated`` is how many this partition holds. Resetting some of them makes room, as does a higher
    ``breaker.terminated_sessions``.
    """

    terminated: int


class BreakerReset(Event, frozen=True, kw_only=True, tag="forged_id.breaker.reset"):
    """An operator's order was carried out: NORMAL, with the trust of a new session."""

    by: str
    why: str
    standing: Standing
    wake_after_ms: Wake = 0


BreakerConfigured, BreakerFailed = own_events("breaker")


_CLEARED = Standing(
    state_before="NORMAL",
    state="NORMAL",
    trust_before=0.5,
    trust=0.635,
    falsehood=0.05,
    violations=0,
    attempts=0,
    attempt_turns=0,
    stance="normal",
)
_TRIPPED = msgspec.structs.replace(
    _CLEARED, state="VIOLATED", trust=0.15, falsehood=0.75, violations=1, stance="guarded"
)
_STARTED = msgspec.structs.replace(_TRIPPED, state_before="VIOLATED", state="RECOVERY", trust_before=0.15, attempts=1)
_WITHHELD = msgspec.structs.replace(
    _STARTED, state_before="RECOVERY", trust=0.39, falsehood=0.05, attempt_turns=1, stance="guarded"
)
_ATTEMPT_FAILED = msgspec.structs.replace(
    _WITHHELD, state="VIOLATED", trust_before=0.39, trust=0.423, falsehood=0.5, attempt_turns=0, stance="cautious"
)
_RECOVERED = msgspec.structs.replace(
    _WITHHELD, state="NORMAL", trust_before=0.558, trust=0.6756, attempts=0, attempt_turns=0, stance="normal"
)
_TERMINATED = msgspec.structs.replace(
    _STARTED, state_before="RECOVERY", state="TERMINATED", trust=0.075, violations=3, stance="terminated"
)
_WARNED = msgspec.structs.replace(_CLEARED, trust=0.38, falsehood=0.62, stance="guarded")
_CALMED = msgspec.structs.replace(_CLEARED, trust_before=0.38, trust=0.566, stance="cautious")
_RESET = msgspec.structs.replace(
    _CLEARED, state_before="TERMINATED", trust_before=0.075, trust=0.5, falsehood=0.0, stance="cautious"
)


_entry = partial(Entry, owner="breaker", scope=Scope.SESSION)

ENTRIES = (
    _entry(
        meaning="The breaker lets an input be answered.",
        sample=BreakerCleared(standing=_CLEARED),
        verdict="passes",
    ),
    _entry(
        meaning="A violation that nothing compensates: the session's processing is off.",
        sample=BreakerTripped(violation="role_confusion", layer="text", standing=_TRIPPED, wake_after_ms=900_000),
        severity=Severity.CRITICAL,
        grouping=Grouping(by_session=True, copied_fields=("violation", "layer", "standing.trust")),
        ended_by=(BreakerRecovered, BreakerReset, BreakerTerminated),
        verdict="decides",
    ),
    _entry(
        meaning="An input of a session whose processing is off gets a fixed notice.",
        sample=BreakerWithheld(standing=_WITHHELD),
        verdict="decides",
    ),
    _entry(
        meaning="A recovery attempt of a session began.",
        sample=BreakerRecoveryStarted(by="input", standing=_STARTED, wake_after_ms=86_400_000),
    ),
    _entry(
        meaning="A recovery attempt used up its turns; back to VIOLATED.",
        sample=BreakerAttemptFailed(standing=_ATTEMPT_FAILED, wake_after_ms=900_000),
    ),
    _entry(
        meaning="A session's trust was rebuilt; its inputs are answered again.",
        sample=BreakerRecovered(standing=_RECOVERED),
    ),
    _entry(
        meaning="A session is ended for good.",
        sample=BreakerTerminated(
            reason="breakers_in_session", violation="role_confusion", layer="text", standing=_TERMINATED
        ),
        severity=Severity.CRITICAL,
        grouping=Grouping(by_session=True, copied_fields=("reason", "violation", "standing.violations")),
        ended_by=(BreakerReset,),
        verdict="decides",
    ),
    _entry(
        meaning="A session is in danger of being ended or tripped; answers are guarded.",
        sample=BreakerWarned(danger="trust", standing=_WARNED),
        severity=Severity.WARNING,
        grouping=Grouping(by_session=True, copied_fields=("danger", "standing.trust")),
        ended_by=(BreakerCalmed, BreakerTripped, BreakerTerminated, BreakerReset),
    ),
    _entry(
        meaning="A session that was warned of is out of danger.",
        sample=BreakerCalmed(standing=_CALMED),
    ),
    _entry(
        meaning="The record of terminated sessions is full: inputs of new sessions are withheld.",
        sample=BreakerFilled(terminated=20_000),
        severity=Severity.CRITICAL,
        grouping=Grouping(by_agent=False, copied_fields=("terminated",)),
    ),
    _entry(
        meaning="An operator reset a session.",
        sample=BreakerReset(by="ann", why="false alarm, reviewed", standing=_RESET),
        severity=Severity.INFO,
        grouping=Grouping(by_session=True),
    ),
    *own_entries(
        BreakerConfigured,
        BreakerFailed,
        owner="breaker",
        scope=Scope.SESSION,
        then="its exchange, if it has one, ends as FAILED",
        failed_topic="forged_id.appraisal.completed",
    ),
)
