"""What a process measures of its partitions and appends, in plain counts.

Counting costs a few hundred nanoseconds a decision: a partition keeps the counts of its actor, with no name to look up
and no lock to take. Metrics are made of the counts when Prometheus asks for them.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from actors.runtime.budget import FIELD as BUDGET_FIELD

NS_PER_S = 1_000_000_000

EDGES_S = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
"""Upper edges of buckets, in seconds; the budgets of the actors are added for decisions."""

LEASE_TAKEN, LEASE_LEFT = "taken", "left"
"""How the lead of a partition (in metrics: its lease) changes: this process takes it, or no longer has it."""


class Histogram:
    """Counts durations by bucket.

    Attributes:
        edges_s: The upper edges, in seconds, ascending; a duration equal to an edge is in its bucket.
        counts: Number of durations in each bucket; the last bucket has those above the last edge.
        sum_ns: All durations together.
    """

    __slots__ = ("_edges_ns", "counts", "edges_s", "sum_ns")

    def __init__(self, edges_s: Iterable[float] = EDGES_S) -> None:
        self.edges_s = tuple(sorted(set(edges_s)))
        self._edges_ns = [round(edge * NS_PER_S) for edge in self.edges_s]
        self.counts = [0] * (len(self.edges_s) + 1)
        self.sum_ns = 0

    def observe(self, duration_ns: int) -> None:
        """Count a duration in nanoseconds."""
        self.counts[bisect_left(self._edges_ns, duration_ns)] += 1
        self.sum_ns += duration_ns

    def above(self, edge_s: float) -> int:
        """Return how many durations were longer than one of the edges."""
        return sum(self.counts[self.edges_s.index(edge_s) + 1 :])


class ActorMeasurements:
    """What the partitions of one actor did in this process.

    Attributes:
        decisions: How long each decision took.
        outcomes: Topic of a decision's first event -> stored decisions; "" -> decisions without an event.
        conflicts: Reason -> how often a partition lost its state to another writer, or to an unknown outcome.
        leases: Change (:data:`LEASE_TAKEN`, :data:`LEASE_LEFT`) -> how often.
        recoveries: How often a partition was folded from the log.
        budget_s: The latency budget of a decision; None where the actor has none.
    """

    __slots__ = ("budget_s", "conflicts", "decisions", "leases", "outcomes", "recoveries")

    def __init__(self, edges_s: Sequence[float], budget_s: float | None) -> None:
        self.decisions = Histogram(edges_s)
        self.outcomes = Counter[str]()
        self.conflicts = Counter[str]()
        self.leases = Counter[str]()
        self.recoveries = 0
        self.budget_s = budget_s


class Measurements:
    """What a process measures, by actor.

    Args:
        actors: The actors that it runs.
        settings: Settings by actor, also of actors in other processes. Every budget among them is an edge of every
            actor's buckets, so that buckets can be added up over actors and processes.
    """

    def __init__(self, actors: Iterable[str], settings: Mapping[str, Any]) -> None:
        budgets = {
            name: limit_ms / 1_000
            for name, each in settings.items()
            if (limit_ms := getattr(each, BUDGET_FIELD, None)) is not None
        }
        edges = (*EDGES_S, *budgets.values())
        self.by_actor = {actor: ActorMeasurements(edges, budgets.get(actor)) for actor in actors}
