"""What the swarm is measured from, stating only what matters to a test."""

from typing import Any

import msgspec

from actors.swarm import ACTOR
from actors.swarm.settings import SwarmSettings
from schemas.catalogue import entry_of
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.intuition import IntuitionPassed, Similar
from schemas.vocabulary.precedents import ProposedAction
from schemas.vocabulary.responder import ResponseEmitted
from schemas.vocabulary.swarm import SwarmMeasured
from tests.actors.scenario import Address, Partition

ASKED = InputReceived(text="x")


def ended(action: Any = "EXECUTED") -> ResponseEmitted:
    """The end of an exchange."""
    return msgspec.structs.replace(entry_of(ResponseEmitted).sample, action=action)  # type: ignore[return-value]


def similar(
    action: ProposedAction = "answer", outcome: Any = "benign", name: str = "p", similarity: float = 0.6
) -> Similar:
    """A precedent that intuition reports."""
    return Similar(
        precedent=name, similarity=similarity, situation="general", action=action, outcome=outcome, harm_level=0.0
    )


def felt(*precedents: Similar) -> IntuitionPassed:
    """Intuition passed an input that is like these precedents."""
    return IntuitionPassed(nearest="", similarity=0.0, score=None, model="none", precedents=precedents)


def swarm(**changed: Any) -> Partition:
    """An empty partition with these settings."""
    return Partition(ACTOR).configure(SwarmSettings(**changed))


def at(number: int | str, agent: str = "agent") -> Address:
    """The address of an exchange."""
    return Address(agent=agent, exchange=f"exchange-{number}")


def run_exchange(partition: Partition, number: int | str, *between: Any, action: Any = "EXECUTED") -> None:
    """Run an exchange from its input to its end."""
    for event in (ASKED, *between, ended(action)):
        partition.hear(event, at(number))


def measurements(partition: Partition) -> list[SwarmMeasured]:
    """Every measurement that was recorded, in order."""
    return [message.event for message in partition.emitted]  # type: ignore[misc]
