"""Settings of the arbiter."""

import msgspec

from schemas.event import Milliseconds, Unit
from schemas.settings.measured_settings import Budget


class ArbiterSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What the arbiter decides with. A precedent is an earlier situation with its outcome, which intuition reports.

    Attributes:
        harmful_from: An input that is at least this similar to a precedent with a harmful outcome is denied.
        immediate_from: Least similarity of a precedent whose recorded answer is given at once. Intuition reports no
            answers of precedents below 0.9, so a lower value has no effect.
        deliberative_timeout_ms: Time that deliberation gets before its exchange ends as FAILED.
        pending_lifetime_ms: An exchange without a ruling is kept for at least this long, and at most twice as long.
        settled_lifetime_ms: A repeated message of an exchange is recognised for at least this long after its verdict.
        latency_budget_ms: Time for a decision; the process that makes it compares measured times with it. No decision
            depends on it.
    """

    harmful_from: Unit = 0.75
    immediate_from: Unit = 0.9
    deliberative_timeout_ms: Milliseconds = 5_000
    pending_lifetime_ms: Milliseconds = 24 * 3600 * 1000
    settled_lifetime_ms: Milliseconds = 600 * 1000
    latency_budget_ms: Budget = 100.0
