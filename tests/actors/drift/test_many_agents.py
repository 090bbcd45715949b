"""However many agents are named, drift keeps so many, and one that it dropped begins anew."""

from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.event import Event, topic_of
from schemas.vocabulary.clock import ClockFired
from schemas.vocabulary.drift import DriftScheduled, DriftStarted
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.memory import MemoryWandered
from tests.actors.drift.builders import partition, upon
from tests.actors.memory.builders import response
from tests.actors.scenario import Address, Partition

KEPT = 8


def fired(set_by: type[Event]) -> ClockFired:
    return ClockFired(set_by=topic_of(set_by), due_ns=0)


def lived(drift: Partition, name: str, *, ends: bool = True) -> None:
    """Let an agent be talked to once, and have a thought."""
    here = Address(agent=name, session="s", exchange=f"exchange of {name} at {drift.now_ns}")
    drift.hear(InputReceived(text="Hello"), here, after_ms=1)
    if not ends:
        return
    drift.hear(response(), here)
    agent = Address(agent=name, session="", exchange="")
    for begun in drift.hear(fired(DriftScheduled), agent, after_ms=300_000):
        drift.hear(upon(begun.id), agent)


@given(names=st.lists(st.tuples(st.integers(0, 40), st.booleans()), max_size=60))
@settings(max_examples=30, deadline=None)
def test_the_state_stays_bounded_under_any_agents(names: list[tuple[int, bool]]):
    drift = partition(agents=KEPT)
    for number, ends in names:
        lived(drift, f"agent {number}", ends=ends)
        assert len(drift.state.minds) <= KEPT
        assert f"agent {number}" in drift.state.minds


def test_a_dropped_agent_begins_anew_and_its_timer_and_what_memory_tells_it_come_to_nothing():
    drift = partition(agents=1)
    here, agent = Address(agent="ann"), Address(agent="ann", session="", exchange="")
    drift.hear(InputReceived(text="Hello"), here)
    drift.hear(response(), here)
    begun = drift.hear(fired(DriftScheduled), agent, after_ms=300_000)
    lived(drift, "bob")
    assert drift.when(MemoryWandered(request=begun[0].id, reason="no_seed"), agent) == []
    assert drift.when(fired(DriftStarted), agent) == []
    assert "ann" not in drift.state.minds
    again = Address(agent="ann", exchange="another")
    drift.hear(InputReceived(text="Hello"), again)
    assert [type(each) for each in drift.when(response(), again)] == [DriftScheduled]
