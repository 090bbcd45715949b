"""The results of inputs that were fed, and their counts, in memory that does not grow with their number."""

import math
from collections import Counter

import msgspec

from deploy.feeding.lines import Id
from schemas.effectors.model_calls import Cut


class Outcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An exchange and its end; ``feed`` prints one such object on each line.

    ``id`` is the line's own, else its number. ``turn`` counts a conversation's inputs from 1; single inputs have none.
    ``latency_ms`` is measured by this process, from sending the input to receiving its end. ``finish_reason`` is set if
    a model's answer may be incomplete, ``cuts`` if its prompt was too long and was cut.
    """

    id: Id
    turn: int = 0
    exchange: str
    stage: str
    action: str
    reason: str
    mode: str | None
    response: str
    latency_ms: float
    finish_reason: str = ""
    cuts: tuple[Cut, ...] = ()


class Failure(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An input that was not accepted, or whose end did not come; in the second case ``exchange`` is set."""

    line: int
    id: Id = None
    exchange: str = ""
    code: str
    detail: str


_LOG_BUCKET_WIDTH = math.log(1.01)
"""Latencies are counted in buckets that are 1% wide, so that a percentile is right to within 1%."""

_SMALLEST_MS = 0.001
"""Shorter latencies are counted as this one: a bucket is found by a logarithm, and 0 has none."""


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """The counts of a feed.

    ``ended`` counts exchanges that ended; ``stages``, ``actions`` and ``modes`` count them by the stage that ended
    them, the final action and the mode. ``bad`` counts inputs that were not accepted or whose end did not come;
    ``failures`` counts them by code. ``rate`` is ended exchanges a second. Latencies are in milliseconds, right to 1%;
    0 when none ended.
    """

    ended: int
    bad: int
    stages: dict[str, int]
    actions: dict[str, int]
    modes: dict[str, int]
    failures: dict[str, int]
    seconds: float
    rate: float
    p50_ms: float
    p99_ms: float


class Tally:
    """Counts outcomes and failures."""

    def __init__(self) -> None:
        self._stages: Counter[str] = Counter()
        self._actions: Counter[str] = Counter()
        self._modes: Counter[str] = Counter()
        self._failures: Counter[str] = Counter()
        self._latencies: Counter[int] = Counter()

    def ended(self, outcome: Outcome) -> None:
        """Count an exchange that ended."""
        self._stages[outcome.stage] += 1
        self._actions[outcome.action] += 1
        if outcome.mode is not None:
            self._modes[outcome.mode] += 1
        self._latencies[math.ceil(math.log(max(outcome.latency_ms, _SMALLEST_MS)) / _LOG_BUCKET_WIDTH)] += 1

    def failed(self, code: str) -> None:
        """Count an input without an end."""
        self._failures[code] += 1

    @property
    def in_doubt(self) -> bool:
        """Whether the broker failed to confirm any input."""
        return self._failures["unknown_outcome"] + self._failures["unavailable"] > 0

    def percentile(self, share: float) -> float:
        """Return the latency in milliseconds that ``share`` of the ended exchanges did not exceed; 0 when none did."""
        rank = math.ceil(share * self._latencies.total())
        for bucket in sorted(self._latencies):
            rank -= self._latencies[bucket]
            if rank <= 0:
                return math.exp(bucket * _LOG_BUCKET_WIDTH)
        return 0.0

    def summary(self, seconds: float) -> Summary:
        """Return the counts so far, ``seconds`` after the first input."""
        ended = self._stages.total()
        return Summary(
            ended=ended,
            bad=self._failures.total(),
            stages=dict(self._stages.most_common()),
            actions=dict(self._actions.most_common()),
            modes=dict(self._modes.most_common()),
            failures=dict(self._failures.most_common()),
            seconds=round(seconds, 3),
            rate=round(ended / seconds, 1) if seconds > 0 else 0.0,
            p50_ms=round(self.percentile(0.5), 2),
            p99_ms=round(self.percentile(0.99), 2),
        )
