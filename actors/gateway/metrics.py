"""The gateway's metrics for Prometheus: inputs, how they ended and how long that took, alerts, and models.

They are counted from the log, starting when this gateway began to read it. Prometheus expects a counter to start again
with its process. Every gateway counts the whole log, so scrape one gateway, or take the maximum of several. Labels come
only from the vocabulary: no agent, session or text is a label.
"""

import math
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from actors.gateway.answer_wait import retry_until_reachable
from events.decoding import Recorded, decode
from events.log import Log, Stored, Tail
from schemas.catalogue import ALERTS
from schemas.envelope import LATENCY, exchange_in
from schemas.event import ROOT, topic_of
from schemas.intake.whole_numbers import read_whole_number
from schemas.subjects import split_stored, topic_filter
from schemas.vocabulary.alerts import SEVERITY_NAMES, Alert, Status
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.llm import LlmCompleted, LlmFailed
from schemas.vocabulary.responder import ResponseEmitted, Stage

LATENCIES_S = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
"""Upper edges of the buckets of an exchange's latency, in seconds."""

MOST_OPEN = 100_000
"""Most open exchanges whose start times are kept; the latency of older ones is not observed."""

_INPUT = topic_of(InputReceived)
_FILTERS = (
    *(topic_filter(topic_of(event)) for event in (InputReceived, ResponseEmitted, LlmCompleted, LlmFailed)),
    topic_filter(f"{ROOT}.alert.>"),
)
_NS_PER_S, _US_PER_S = 1e9, 1e6


class Metrics:
    """The metrics of one gateway, in a registry of their own.

    Counters that alert rules watch begin at 0 for all their labels. Prometheus computes an increase from two samples.
    So if a counter appeared only with its first event, no increase would include that event.
    """

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        self._started_ns: OrderedDict[str, int] = OrderedDict()
        build = Gauge("neuraxis_build_info", "1, with the version of the code.", ("version",), registry=registry)
        build.labels(version("neuraxis")).set(1)
        self._inputs = Counter("neuraxis_inputs", "Inputs that were accepted.", registry=registry)
        self._ends = Counter(
            "neuraxis_exchanges",
            "Exchanges that ended, by the stage that ended them, what it did, and the mode of the answer.",
            ("stage", "action", "mode"),
            registry=registry,
        )
        self._latency = Histogram(
            "neuraxis_exchange_seconds",
            "From an input to its end, between the broker's times of both.",
            ("stage",),
            buckets=LATENCIES_S,
            registry=registry,
        )
        self._alerts = Counter(
            "neuraxis_alerts",
            "Announcements of alerts, by severity, what they are about, and whether it fires or is resolved.",
            ("severity", "source", "status"),
            registry=registry,
        )
        self._tokens = Counter(
            "neuraxis_model_tokens",
            "Tokens of language models, by what for, and whether they were read or written.",
            ("purpose", "kind"),
            registry=registry,
        )
        self._model_latency = Histogram(
            "neuraxis_model_request_seconds",
            "From taking a request for a language model to its answer or failure, with all attempts, by what for.",
            ("purpose",),
            buckets=LATENCIES_S,
            registry=registry,
        )
        self._failures = Counter(
            "neuraxis_model_failures",
            "Requests that no language model answered, by what for and why.",
            ("purpose", "reason"),
            registry=registry,
        )
        self._unread = Counter(
            "neuraxis_events_unread",
            "Ends, alerts and answers of models that are in no other metric, since this release cannot read them.",
            registry=registry,
        )
        self._log = Gauge("neuraxis_log_sequence", "The sequence of the log's last event.", registry=registry)
        self._ledger = Gauge(
            "neuraxis_ledger_sequence", "The sequence that the ledger is written up to; -1: unknown.", registry=registry
        )
        self._lag = Gauge(
            "neuraxis_ledger_lag_messages",
            "Messages of the log that the ledger does not have yet; NaN: unknown.",
            registry=registry,
        )
        self._ready = Gauge(
            "neuraxis_ready", "1 where this gateway's readiness checks pass (/readyz), 0 else.", registry=registry
        )
        self._served = Gauge(
            "neuraxis_stage_served",
            "1 where a stage that has to be served is, 0 else; NaN: unknown.",
            ("stage",),
            registry=registry,
        )
        for severity, source in ALERTS:
            for status in get_args(Status):
                self._alerts.labels(SEVERITY_NAMES[severity], source, status)
        for stage in get_args(Stage):
            self._ends.labels(stage, "FAILED", "")

    async def follow(self, log: Log) -> None:
        """Count events as they come, until cancelled. No text is read, so events may stay encrypted.

        Outages of the broker are waited for, at the start, too.

        Raises:
            NotPermitted: the login may not read the log.
        """

        async def begin() -> Tail:
            return await log.tail(_FILTERS, (await log.info()).last_seq)

        tail = await retry_until_reachable(begin)
        try:
            while True:
                self.count(await tail.next())
        finally:
            await tail.close()

    def count(self, batch: Sequence[Stored]) -> None:
        """Count events of the log; of those that this release cannot read, only their number."""
        for stored in batch:
            if split_stored(stored.subject)[0] == _INPUT:
                self._inputs.inc()
                self._begin(exchange_in(stored.headers), stored.time_ns)
            elif isinstance(recorded := decode(stored), Recorded):
                self._count(recorded, exchange_in(stored.headers))
            else:
                self._unread.inc()

    def render(self, *, log_seq: int, ledger_seq: int, served: Mapping[str, bool | None], ready: bool) -> bytes:
        """Return the metrics in the format of Prometheus, including the values just measured that are given here.

        ``ledger_seq`` is -1, and the value of a stage in ``served`` None, where that is not known.
        """
        self._ready.set(ready)
        self._log.set(log_seq)
        self._ledger.set(ledger_seq)
        self._lag.set(max(0, log_seq - ledger_seq) if ledger_seq >= 0 else math.nan)
        for stage, is_served in served.items():
            self._served.labels(stage).set(math.nan if is_served is None else is_served)
        return generate_latest(self._registry)

    def _begin(self, exchange: str, time_ns: int) -> None:
        self._started_ns[exchange] = time_ns
        if len(self._started_ns) > MOST_OPEN:
            self._started_ns.popitem(last=False)

    def _count(self, recorded: Recorded, exchange: str) -> None:
        match recorded.message.event:
            case ResponseEmitted() as end:
                self._ends.labels(end.stage, end.action, end.mode or "").inc()
                started_ns = self._started_ns.pop(exchange, None)
                if started_ns is not None:
                    self._latency.labels(end.stage).observe((recorded.message.time_ns - started_ns) / _NS_PER_S)
            case Alert() as alert:
                self._alerts.labels(alert.severity, alert.source, alert.status).inc()
            case LlmCompleted() as answer:
                self._tokens.labels(answer.purpose, "read").inc(answer.prompt_tokens)
                self._tokens.labels(answer.purpose, "written").inc(answer.completion_tokens)
                self._observe_latency(answer.purpose, recorded)
            case LlmFailed() as failure:
                self._failures.labels(failure.purpose or "", failure.reason).inc()
                self._observe_latency(failure.purpose or "", recorded)

    def _observe_latency(self, purpose: str, recorded: Recorded) -> None:
        if (latency_us := read_whole_number(recorded.stored.headers.get(LATENCY, ""))) is not None:
            self._model_latency.labels(purpose).observe(latency_us / _US_PER_S)
