"""The metrics of one worker process, made from its counts at each request of Prometheus.

Nothing here runs for each message. Labels come from the vocabulary and the configuration: actors, events, reasons,
partitions. Agents, sessions, exchanges and texts are never labels.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version

import msgspec
from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from actors.runtime.committer import Committer
from actors.runtime.context import Role
from actors.runtime.effectors.effector_worker import EffectorWorker
from actors.runtime.measurements import NS_PER_S, Histogram
from actors.runtime.worker import Worker
from schemas.catalogue import CATALOGUE
from schemas.event import ROOT

NO_EVENT = "none"
"""The label ``outcome`` of decisions that emitted no event."""


class TraceCounts(msgspec.Struct):
    """Counts of spans: ``sent`` to the collector, ``refused`` by it for good, and ``waiting`` for it.

    ``failures`` counts attempts to reach it that failed.
    """

    sent: int = 0
    refused: int = 0
    failures: int = 0
    waiting: int = 0


class ProcessMetrics(Collector):
    """The metrics of a process. Its attributes are set as soon as what they name exists.

    Attributes:
        worker: Runs the actors.
        effectors: The effectors.
        traces: Counts of spans.
    """

    def __init__(self) -> None:
        self.worker: Worker | None = None
        self.effectors: Sequence[EffectorWorker] = ()
        self.traces = TraceCounts()

    def registry(self) -> CollectorRegistry:
        """Return a registry with these metrics and those of the process (memory, processor time, descriptors)."""
        registry = CollectorRegistry()
        registry.register(self)
        ProcessCollector(registry=registry)
        return registry

    def describe(self) -> Iterable[Metric]:
        """Return nothing: the metrics' names are not known before something runs."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Yield the present metrics. Runs in another thread, so it copies what the event loop may change meanwhile."""
        yield _gauge("neuraxis_build_info", "1, with the version of the code.", {(version("neuraxis"),): 1}, "version")
        if self.worker is not None:
            yield from _worker_metrics(self.worker)
            if self.worker.committer is not None:
                yield from _append_metrics(self.worker.committer)
        yield from _effector_metrics(self.effectors)
        yield from _trace_metrics(self.traces)


def outcome_of(topic: str) -> str:
    """Return the label ``outcome`` of a decision: its first event's name without the actor's prefix, or NO_EVENT."""
    if not topic:
        return NO_EVENT
    return topic.removeprefix(f"{ROOT}.").removeprefix(f"{CATALOGUE[topic].prefix}.")


def _worker_metrics(worker: Worker) -> Iterator[Metric]:
    measured = dict(worker.measurements.by_actor)
    shards = list(worker.shards.items())  # a shard is a partition as this worker runs it
    running = {name for (name, _), _ in shards}
    measured = {actor: found for actor, found in measured.items() if actor in running or actor in worker.hosted}
    yield _counter(
        "neuraxis_decisions",
        "Decisions, by the event that came first of each; `none`: no event.",
        {
            (actor, outcome_of(topic)): count
            for actor, found in measured.items()
            for topic, count in list(found.outcomes.items())
        },
        "actor",
        "outcome",
    )
    yield _histogram(
        "neuraxis_decision_seconds",
        "How long decisions took, without waiting and storing; each latency budget is an edge.",
        {(actor,): found.decisions for actor, found in measured.items()},
        "actor",
    )
    yield _counter(
        "neuraxis_decisions_over_budget",
        "Decisions that took longer than the actor's latency budget.",
        {
            (actor,): found.decisions.above(found.budget_s)
            for actor, found in measured.items()
            if found.budget_s is not None
        },
        "actor",
    )
    yield _gauge(
        "neuraxis_decision_budget_seconds",
        "The latency budget of a decision, of actors that have one.",
        {(actor,): found.budget_s for actor, found in measured.items() if found.budget_s is not None},
        "actor",
    )
    yield _counter(
        "neuraxis_fence_conflicts",
        "How often a partition lost its state to another writer, or did not learn whether an append was stored.",
        {
            (actor, reason): count
            for actor, found in measured.items()
            for reason, count in list(found.conflicts.items())
        },
        "actor",
        "reason",
    )
    yield _counter(
        "neuraxis_lease_changes",
        "How often this process took the lead of a partition, or left it.",
        {(actor, change): count for actor, found in measured.items() for change, count in list(found.leases.items())},
        "actor",
        "change",
    )
    yield _counter(
        "neuraxis_recoveries",
        "How often a partition was folded from its snapshot and the log.",
        {(actor,): found.recoveries for actor, found in measured.items()},
        "actor",
    )
    leading = [(key, shard) for key, shard in shards if shard.role is Role.LEADING]
    yield _gauge(
        "neuraxis_lag_messages",
        "Messages that wait to be decided, of partitions that this process leads.",
        {key: len(shard.view.waiting) for key, shard in leading},
        "actor",
        "partition",
    )
    roles: dict[tuple[str, ...], float] = {}
    for (actor, _), shard in shards:
        roles[actor, shard.role.value] = roles.get((actor, shard.role.value), 0) + 1
    yield _gauge(
        "neuraxis_partitions", "Partitions in this process, by what it does with them.", roles, "actor", "role"
    )
    yield _gauge(
        "neuraxis_read_sequence",
        "The sequence of the log up to which this process has read.",
        {(): max((shard.view.position for _, shard in shards), default=0)},
    )


def _append_metrics(committer: Committer) -> Iterator[Metric]:
    yield _counter("neuraxis_appended_events", "Events that this process has stored.", {(): committer.appended})
    yield _histogram(
        "neuraxis_append_seconds",
        "How long appends took until the broker acknowledged them; a broker that flushes always flushes once for each.",
        {("single",): committer.singles, ("batch",): committer.batched},
        "kind",
    )
    yield _gauge(
        "neuraxis_unappended_events", "Events that are decided and wait for an append.", {(): committer.waiting}
    )


def _effector_metrics(effectors: Sequence[EffectorWorker]) -> Iterator[Metric]:
    counted = {each.effector.name: each.counters for each in effectors}
    yield _counter(
        "neuraxis_effects",
        "Requests to the world outside: answered, failed (the failure is recorded), or found answered by another.",
        {
            (name, outcome): count
            for name, each in counted.items()
            for outcome, count in (
                ("answered", each.stored - each.failed),
                ("failed", each.failed),
                ("repeated", each.answered),
            )
        },
        "effector",
        "outcome",
    )


def _trace_metrics(traces: TraceCounts) -> Iterator[Metric]:
    yield _counter(
        "neuraxis_trace_spans",
        "Spans that the collector took, or refused for good.",
        {("sent",): traces.sent, ("refused",): traces.refused},
        "result",
    )
    yield _counter(
        "neuraxis_trace_failures", "Attempts to reach the collector that failed; they are repeated.",
        {(): traces.failures},
    )  # fmt: skip
    yield _gauge("neuraxis_trace_spans_waiting", "Spans that wait for the collector.", {(): traces.waiting})


def _counter(name: str, meaning: str, counts: Mapping[tuple[str, ...], float], *labels: str) -> Metric:
    family = CounterMetricFamily(name, meaning, labels=labels)
    for values, count in sorted(counts.items()):
        family.add_metric(values, count)
    return family


def _gauge(name: str, meaning: str, gauges: Mapping[tuple[str, ...], float], *labels: str) -> Metric:
    family = GaugeMetricFamily(name, meaning, labels=labels)
    for values, value in sorted(gauges.items()):
        family.add_metric(values, value)
    return family


def _histogram(name: str, meaning: str, histograms: Mapping[tuple[str, ...], Histogram], *labels: str) -> Metric:
    family = HistogramMetricFamily(name, meaning, labels=labels)
    for values, histogram in sorted(histograms.items(), key=lambda item: item[0]):
        counts, total, buckets = list(histogram.counts), 0, []
        for edge, count in zip((*map(str, histogram.edges_s), "+Inf"), counts, strict=True):
            total += count
            buckets.append((edge, total))
        family.add_metric(values, buckets, histogram.sum_ns / NS_PER_S)
    return family
