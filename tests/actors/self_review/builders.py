"""Citizens seen from outside, tick by tick: builders that state only what matters."""

from collections.abc import Sequence
from typing import Any

import msgspec

from actors.self_review import ACTOR
from actors.self_review.agent_state import AgentState
from actors.self_review.decider import agent_state_of
from actors.self_review.settings import SelfReviewSettings
from schemas.event import Event
from schemas.vocabulary.loops import ObservedEntity, TickObserved
from schemas.vocabulary.self_review import SelfReviewResult, SelfReviewTriggered
from tests.actors.scenario import Address, Partition

FELIX = Address(agent="felix", session="", exchange="")
WARM_UP = SelfReviewSettings().warm_up

TESTS = ObservedEntity(id="validator", energy=0.5, tokens=100, terms=("tests",))
DOCS = ObservedEntity(id="docs_sync", energy=0.5, tokens=100, terms=("docs",))
GOOD = TickObserved(stimulus_terms=("tests", "docs"), chosen=(TESTS, DOCS))
"""A calm tick with a prompt to the point."""

SHOCK: dict[str, Any] = {"arousal": 0.9, "valence": -0.8}
BETTER: dict[str, Any] = {
    "chosen": (ObservedEntity(id="worse", energy=0.5, tokens=100, terms=("canoe",)), DOCS),
    "candidates": (TESTS,),
}
"""Fields of a tick in distress, and of one whose prompt left out the better entity."""


def tick(**changes: Any) -> TickObserved:
    """Return the good, calm tick with other fields."""
    return msgspec.structs.replace(GOOD, **changes)


def citizen(settings: SelfReviewSettings | None = None, *, ticks: int = WARM_UP) -> Partition:
    """Return a partition whose citizen has had so many good, calm ticks."""
    partition = Partition(ACTOR)
    if settings is not None:
        partition.configure(settings)
    for _ in range(ticks):
        assert partition.when(GOOD, FELIX) == []
    return partition


def mind(partition: Partition) -> AgentState:
    """Return what is kept of the citizen."""
    return agent_state_of(partition.state, FELIX.agent)


def see(partition: Partition, **changes: Any) -> list[Event]:
    """Let the citizen have a tick; return what it leads to."""
    return partition.when(tick(**changes), FELIX)


def reasons(led_to: Sequence[Event]) -> tuple[str, ...]:
    """Return the reasons of a review; none where none fired."""
    return next((event.reasons for event in led_to if isinstance(event, SelfReviewTriggered)), ())


def result(led_to: Sequence[Event]) -> SelfReviewResult:
    """Return a review's result."""
    (found,) = [event for event in led_to if isinstance(event, SelfReviewResult)]
    return found
