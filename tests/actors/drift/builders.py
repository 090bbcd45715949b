"""Agents that were talked to, and a drift and a memory that hear each other, stating only what matters to a test."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

import msgspec

from actors.clock import ACTOR as CLOCK
from actors.drift import ACTOR
from actors.drift.settings import DriftSettings
from actors.memory import ACTOR as MEMORY
from actors.memory.settings import MemorySettings
from schemas.event import Event, topic_of
from schemas.vocabulary.clock import ClockFired
from schemas.vocabulary.drift import DriftScheduled, DriftSkipped, DriftStarted, DriftThought, Strategy
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.memory import Activation, MemoryRecalled, MemoryWandered
from tests.actors.memory.builders import ESCALATED, appraisal, response
from tests.actors.pipeline import Pipeline
from tests.actors.scenario import Address, Partition

E = TypeVar("E", bound=Event)

MINUTE_MS = 60_000
AGENT = Address(session="", exchange="")
TALKED = Address(session="morning", exchange="")


def partition(**changes: object) -> Partition:
    """Return an empty drift partition with these settings."""
    return Partition(ACTOR).configure(msgspec.convert(changes, DriftSettings))


def wake(drift: Partition, *, after_ms: int = 300_000, set_by: type[Event] = DriftScheduled) -> Event:
    """Let the agent's timer go off; return what drift says."""
    (event,) = drift.when(ClockFired(set_by=topic_of(set_by), due_ns=0), AGENT, after_ms=after_ms)
    return event


def talk(drift: Partition, exchange: str = "e1", *, after_ms: int = 0) -> list[Event]:
    """Let an exchange begin and end; return what its end leads to."""
    here = Address(exchange=exchange)
    drift.hear(InputReceived(text="Hello"), here, after_ms=after_ms)
    return drift.when(response(), here)


def started(drift: Partition, *, after_ms: int = 300_000, set_by: type[Event] = DriftScheduled) -> str:
    """Let the timer go off and a drift start; return the id of its ``drift.started``."""
    assert isinstance(wake(drift, after_ms=after_ms, set_by=set_by), DriftStarted)
    return drift.emitted[-1].id


def upon(
    request: str,
    activation: float = 0.7,
    *,
    seed: str = "concept:97",
    strategy: Strategy = "recent",
    episode: str = "episode:3",
) -> MemoryWandered:
    """Return what memory came upon."""
    return MemoryWandered(
        request=request,
        reason="",
        strategy=strategy,
        seed=seed,
        concept="peru",
        strength=1.0,
        activations=(
            Activation(concept="concept:96", energy=activation, term="capital"),
            Activation(concept="concept:32", energy=activation / 2),
        ),
        activation=activation,
        episode=episode,
        text="Asked: What is the capital of Peru?",
    )


def thought(drift: Partition, activation: float = 0.7, *, seed: str = "concept:97") -> DriftThought:
    """Let a drift, due now, come to a thought."""
    event, scheduled = drift.when(upon(started(drift), activation, seed=seed), TALKED)
    assert isinstance(event, DriftThought)
    assert isinstance(scheduled, DriftScheduled)
    return event


class Idle:
    """An agent's drift, memory and clock, joined by a stream; what others say in an exchange is told to them."""

    def __init__(self, drift: DriftSettings | None = None, memory: MemorySettings | None = None) -> None:
        actors = {each.name: each for each in (ACTOR, CLOCK, MEMORY)}
        self.pipeline = Pipeline(actors)
        self.pipeline.partitions["drift"].configure(drift or DriftSettings())
        self.pipeline.partitions["memory"].configure(memory or MemorySettings(floor=0.0, recollections=100))

    def talk(self, text: str, exchange: str, session: str = "morning", salience: float = 0.6) -> None:
        """Let an exchange be executed."""
        here = Address(session=session, exchange=exchange)
        self.pipeline.ask(text, here)
        self.pipeline.send(appraisal(arousal=salience, novelty=salience), here)
        self.pipeline.send(response(), here)

    def recalled(self, text: str, exchange: str, session: str = "morning") -> MemoryRecalled:
        """Ask something; return what comes to mind."""
        here = Address(session=session, exchange=exchange)
        self.pipeline.ask(text, here)
        self.pipeline.send(appraisal(), here)
        self.pipeline.send(ESCALATED, here)
        found = self.told(MemoryRecalled)[-1]
        self.pipeline.send(response(), here)
        return found

    def told(self, kind: type[E]) -> list[E]:
        """Return the events of a kind, in order."""
        return [each.event for each in self.pipeline.stream if isinstance(each.event, kind)]

    def reasons(self) -> list[str]:
        """Return why drifts were skipped, in order."""
        return [each.reason for each in self.told(DriftSkipped)]


def strategies(*names: Strategy) -> DriftSettings:
    """Return settings under which only these strategies are ever asked."""
    given: dict[str, float] = dict.fromkeys(("decaying", "recent", "salient", "random"), 0.0)
    return DriftSettings(**(given | dict.fromkeys(names, 1.0)))  # type: ignore[arg-type]


def seeds(thoughts: Iterable[DriftThought]) -> Sequence[str]:
    """Return the concepts that thoughts began with."""
    return [each.concept for each in thoughts]
