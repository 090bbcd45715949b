"""The latency budget of an actor's decisions, measured by the runtime: no decision may depend on how long it takes."""

from collections.abc import Mapping
from typing import Any

from events.loggers import get_logger
from schemas.availability import Overrun

FIELD = "latency_budget_ms"
"""The field by which an actor's settings state a budget for each of its decisions, in milliseconds."""

WORST_KEPT_NS = 30_000_000_000
"""Nanoseconds after which the longest decision over budget is forgotten."""

_WARN_EVERY_NS = 10_000_000_000
"""Least nanoseconds between two warnings."""

_logger = get_logger("neuraxis.budget")


class Budget:
    """Counts the decisions of a partition that took longer than its actor's settings allow, and logs a warning.

    Attributes:
        over: Decisions beyond the budget so far.
    """

    def __init__(self, actor: str, partition: str, settings: Mapping[str, Any]) -> None:
        self.over = 0
        self._actor = actor
        self._partition = partition
        self._limit_ms: float | None = settings.get(FIELD)
        self._warned_ns: int | None = None
        self._worst_ns = 0
        self._worst_at_ns = 0

    @property
    def limit_us(self) -> int | None:
        """The budget in microseconds; None where there is none."""
        return None if self._limit_ms is None else round(self._limit_ms * 1_000)

    def overrun(self) -> Overrun | None:
        """Return how many decisions went over budget so far, with the longest recent one; None where none did."""
        if self._limit_ms is None or not self.over:
            return None
        return Overrun(budget_ms=self._limit_ms, count=self.over, worst_ms=round(self._worst_ns / 1e6, 3))

    def observe(self, took_ns: int, now_ns: int, sequence: int, exchange: str = "") -> bool:
        """Note that the decision on message ``sequence`` took ``took_ns``; return whether that is beyond the budget.

        ``exchange`` is the message's exchange, for the warning.

        Warns at the first overrun, then at most once in ten seconds of ``now_ns`` (a monotonic time). Otherwise an
        actor that is always late would fill the process's log.
        """
        if self._limit_ms is None or took_ns <= self._limit_ms * 1e6:
            return False
        self.over += 1
        if took_ns >= self._worst_ns or now_ns - self._worst_at_ns > WORST_KEPT_NS:
            self._worst_ns, self._worst_at_ns = took_ns, now_ns
        if self._warned_ns is None or now_ns - self._warned_ns >= _WARN_EVERY_NS:
            self._warned_ns = now_ns
            _logger.warning(
                "over_budget",
                actor=self._actor,
                partition=self._partition,
                seq=sequence,
                exchange=exchange,
                took_ms=round(took_ns / 1e6, 3),
                budget_ms=self._limit_ms,
                over_budget=self.over,
            )
        return True
