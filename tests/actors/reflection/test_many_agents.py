"""However many agents are named, reflection keeps so many, and one that it dropped begins anew."""

from hypothesis import given, settings
from hypothesis import strategies as st

from actors.reflection.settings import ReflectionSettings
from schemas.event import topic_of
from schemas.vocabulary.clock import ClockFired
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.reflection import ReflectionRequested, ReflectionScheduled
from tests.actors.reflection.builders import IDLE_MS, Reflecting, answer, completed, end, opinion, selection
from tests.actors.scenario import Address

KEPT = 8


def exchange(reflecting: Reflecting, name: str, number: int) -> list[object]:
    here = Address(agent=name, exchange=f"exchange {number} of {name}")
    reflecting.partition.hear(InputReceived(text="Hello"), here, after_ms=1)
    reflecting.partition.hear(selection(), here)
    return list(reflecting.partition.when(end(), here))


@given(numbers=st.lists(st.integers(0, 40), max_size=60))
@settings(max_examples=30, deadline=None)
def test_the_state_stays_bounded_under_any_agents(numbers: list[int]):
    reflecting = Reflecting(ReflectionSettings(backend="llm", agents=KEPT))
    for place, number in enumerate(numbers):
        exchange(reflecting, f"agent {number}", place)
        assert len(reflecting.partition.state.minds) <= KEPT
        assert f"agent {number}" in reflecting.partition.state.minds


def test_a_dropped_agent_begins_anew_and_its_timer_and_the_answer_to_it_come_to_nothing():
    reflecting = Reflecting(ReflectionSettings(backend="llm", agents=1))
    agent = Address(agent="ann", session="", exchange="")
    exchange(reflecting, "ann", 1)
    fired = ClockFired(set_by=topic_of(ReflectionScheduled), due_ns=0)
    [asked] = reflecting.partition.hear(fired, agent, after_ms=IDLE_MS)
    exchange(reflecting, "bob", 1)
    late = ClockFired(set_by=topic_of(ReflectionRequested), due_ns=0)
    assert reflecting.partition.when(completed(answer(opinion(1)), asked.id), agent) == []
    assert reflecting.partition.when(late, agent) == []
    assert exchange(reflecting, "ann", 2) == [ReflectionScheduled(wake_after_ms=IDLE_MS)]
