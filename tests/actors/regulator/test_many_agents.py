"""However many agents are named, the regulator keeps so many, and one that it dropped begins anew."""

from hypothesis import given, settings
from hypothesis import strategies as st

from actors.regulator import ACTOR
from actors.regulator.settings import RegulatorSettings
from schemas.event import topic_of
from schemas.vocabulary.clock import ClockFired
from schemas.vocabulary.regulator import Adjusted, RegulatorScheduled
from tests.actors.regulator.builders import DAY_MS, Regulated, decision, feedback, only
from tests.actors.scenario import Address, Partition

KEPT = 8

events = st.sampled_from([decision(), feedback("missed_act")])


@given(heard=st.lists(st.tuples(st.integers(0, 40), events), max_size=80))
@settings(max_examples=30, deadline=None)
def test_the_state_stays_bounded_under_any_agents(heard: list[tuple[int, object]]):
    partition = Partition(ACTOR).configure(RegulatorSettings(agents=KEPT))
    for number, event in heard:
        partition.hear(event, Address(agent=f"agent {number}"), after_ms=1)  # type: ignore[arg-type]
        assert len(partition.state.loops) <= KEPT
        assert f"agent {number}" in partition.state.loops


def test_a_dropped_agent_begins_anew_and_its_timer_starts_no_cycle():
    partition = Partition(ACTOR).configure(RegulatorSettings(agents=1))
    partition.hear(decision(), Address(agent="ann"))
    partition.hear(decision(), Address(agent="bob"), after_ms=1)
    fired = ClockFired(set_by=topic_of(RegulatorScheduled), due_ns=0)
    assert partition.when(fired, Address(agent="ann", session="", exchange="")) == []
    assert partition.when(decision(), Address(agent="ann")) == [RegulatorScheduled(wake_after_ms=DAY_MS)]


def test_agents_whose_weights_were_moved_are_dropped_last():
    corrected = Regulated(RegulatorSettings(agents=2), agent="corrected")
    only(Adjusted, corrected.day({"RESPOND": 100}))
    for number in range(5):
        corrected.partition.hear(decision(), Address(agent=f"another {number}"), after_ms=1)
    assert {*corrected.partition.state.loops} == {"corrected", "another 4"}
