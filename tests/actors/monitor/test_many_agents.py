"""However many agents are named, the monitor keeps so many, and one that it dropped begins anew."""

from hypothesis import given, settings
from hypothesis import strategies as st

from actors.monitor import ACTOR
from actors.monitor.settings import MonitorSettings
from schemas.event import Event
from schemas.vocabulary.monitor import ModeRedFlag
from tests.actors.regulator.builders import decision, feedback
from tests.actors.scenario import Address, Partition

KEPT = 8

events = st.sampled_from([decision(), decision("IGNORE"), feedback("missed_act")])


@given(heard=st.lists(st.tuples(st.integers(0, 40), events), max_size=80))
@settings(max_examples=30, deadline=None)
def test_the_state_stays_bounded_under_any_agents(heard: list[tuple[int, Event]]):
    partition = Partition(ACTOR).configure(MonitorSettings(agents=KEPT, decisions_needed=2))
    for number, event in heard:
        partition.hear(event, Address(agent=f"agent {number}"), after_ms=1)
        assert len(partition.state.watches) <= KEPT


def test_a_dropped_agent_begins_anew():
    partition = Partition(ACTOR).configure(MonitorSettings(agents=1, decisions_needed=2))
    ann, bob = Address(agent="ann"), Address(agent="bob")
    assert partition.when(decision(), ann) == []
    partition.hear(decision(), bob, after_ms=1)
    assert partition.when(decision(), ann, after_ms=1) == []
    assert any(isinstance(event, ModeRedFlag) for event in partition.when(decision(), ann))


def test_agents_of_which_something_was_reported_are_dropped_last():
    partition = Partition(ACTOR).configure(MonitorSettings(agents=2, decisions_needed=2))
    unhealthy = Address(agent="unhealthy")
    assert [partition.when(decision(), unhealthy) for _ in range(2)][-1]
    for number in range(5):
        partition.hear(decision(), Address(agent=f"another {number}"), after_ms=1)
    assert {*partition.state.watches} == {"unhealthy", "another 4"}
