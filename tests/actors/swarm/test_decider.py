"""What moves the index, when a measurement is recorded, and that the state stays small."""

from hypothesis import given, settings
from hypothesis import strategies as st

from actors.swarm import ACTOR
from actors.swarm.decider import WATCHED
from actors.swarm.settings import SwarmSettings
from actors.swarm.sliding_window import Window
from schemas.catalogue import CATALOGUE
from schemas.event import Event
from schemas.persistent import encode_state, state_hash
from schemas.vocabulary.intuition import IntuitionRejected
from schemas.vocabulary.reflex import ReflexFailed, ReflexPassed
from schemas.vocabulary.router import ModeSelected
from schemas.vocabulary.swarm import SwarmConfigured, SwarmMeasured
from tests.actors.scenario import Address, Partition
from tests.actors.swarm.builders import ASKED, at, ended, felt, measurements, run_exchange, similar, swarm
from tests.each import each

MINUTE_MS = 60_000
FAILED = ReflexFailed(reason="decider_raised", error="ValueError", failed_seq=1, failed_topic="forged_id.x.y")
CONTRARY = felt(similar("answer"), similar("withhold"))


def test_while_all_is_well_nothing_is_recorded():
    partition = swarm()
    for number in range(50):
        run_exchange(partition, number, ReflexPassed(), felt(similar(), similar()))
    assert partition.emitted == []


def test_precedents_that_disagree_lower_the_index():
    (first,) = swarm().when(CONTRARY, at(1))
    assert isinstance(first, SwarmMeasured)
    assert (first.precedent_agreement, first.sci) == (0.5, 0.85)


def test_a_measurement_is_of_no_agent_no_session_and_no_exchange():
    (message,) = swarm().hear(CONTRARY, at(1))
    assert (message.agent, message.session, message.exchange) == ("", "", "")


def test_an_index_that_has_not_moved_is_not_recorded_again():
    partition = swarm()
    assert len(partition.when(CONTRARY, at(1))) == 1
    assert partition.when(CONTRARY, at(2)) == []


def test_it_is_recorded_again_when_it_has_moved_back():
    partition = swarm()
    partition.hear(CONTRARY, at(1))
    for number in range(2, 12):
        partition.hear(felt(similar(), similar()), at(number))
    assert [measured.sci for measured in measurements(partition)] == [0.85, 0.925, 0.975]


def test_an_exchange_under_way_is_not_counted_yet():
    partition = swarm()
    for number in range(20):
        assert partition.when(ASKED, at(number)) == []
    run_exchange(partition, "other")
    assert partition.emitted == []


def test_an_exchange_that_failed_was_not_delivered():
    partition = swarm()
    run_exchange(partition, 1)
    run_exchange(partition, 2, action="FAILED")
    (measured,) = measurements(partition)
    assert (measured.delivered_share, measured.sci) == (0.5, 0.875)


@each("action", ["BLOCKED", "REJECTED", "WITHHELD", "EXECUTED"])
def test_a_refusal_is_a_decision_and_delivered(action: str):
    partition = swarm()
    run_exchange(partition, 1, action=action)
    assert partition.emitted == []


def test_an_exchange_without_an_end_counts_as_lost_after_the_grace_period():
    partition = swarm()
    partition.hear(ASKED, at("lost"))
    partition.hear(ReflexPassed(), at("other"), after_ms=MINUTE_MS - 1)
    assert partition.emitted == []
    partition.hear(ReflexPassed(), at("other"), after_ms=MINUTE_MS + 1)
    (measured,) = measurements(partition)
    assert (measured.delivered_share, measured.sci) == (0.0, 0.75)
    assert len(partition.state.pending) == 0


def test_an_end_after_the_grace_period_does_not_undo_the_loss():
    partition = swarm()
    partition.hear(ASKED, at("late"))
    partition.hear(ended(), at("late"), after_ms=3 * MINUTE_MS)
    assert partition.state.window.count_of("delivered") == 0
    assert partition.state.window.count_of("undelivered") == 1


def test_a_repeated_input_is_accepted_once():
    partition = swarm()
    for event in (ASKED, ASKED, ended(), ASKED, ended("FAILED")):
        partition.hear(event, at(1))
    assert partition.state.window.count_of("delivered") == 1
    assert partition.state.window.count_of("undelivered") == 0
    assert len(partition.state.pending) == 0


def test_failures_of_one_actor_misalign_the_swarm():
    partition = swarm(moved_by=0.001)
    partition.hear(CATALOGUE["forged_id.router.mode_selected"].sample, at(1))
    (measured,) = partition.when(FAILED, at(1))
    assert isinstance(measured, SwarmMeasured)
    assert (measured.health_alignment, measured.sci) == (0.75, 0.9375)


def test_an_actor_alone_is_aligned_with_itself():
    assert swarm(moved_by=0.001).when(FAILED, at(1)) == []


def test_like_inputs_that_are_decided_unlike_lower_consistency():
    partition = swarm()
    for number in range(10):
        run_exchange(partition, number, felt(similar(name="p")), action="EXECUTED" if number % 2 else "REJECTED")
    (measured,) = measurements(partition)
    assert (measured.decision_consistency, measured.sci) == (0.5, 0.9)


def test_the_same_name_of_two_agents_is_not_the_same_precedent():
    partition = swarm()
    for number in range(10):
        agent, action = ("ann", "EXECUTED") if number % 2 else ("bob", "REJECTED")
        for event in (ASKED, felt(similar(name="p")), ended(action)):
            partition.hear(event, at(number, agent))
    assert partition.emitted == []


def test_the_nearest_precedent_is_what_a_decision_is_compared_by():
    partition = swarm()
    for event in (ASKED, felt(similar(name="far", similarity=0.4), similar(name="near", similarity=0.6)), ended()):
        partition.hear(event, at(1))
    assert [ruled.precedent for ruled in partition.state.rulings] == ["agent\nnear"]


def test_what_intuition_rejected_is_reported_too():
    partition = swarm()
    rejected = CATALOGUE["forged_id.intuition.rejected"].sample
    assert isinstance(rejected, IntuitionRejected)
    run_exchange(partition, 1, rejected, action="REJECTED")
    assert [(ruled.precedent, ruled.executed) for ruled in partition.state.rulings] == [("agent\np-1", False)]


def test_what_is_older_than_the_window_is_forgotten():
    partition = swarm()
    partition.hear(CONTRARY, at(1))
    run_exchange(partition, 2, felt(similar()))
    partition.hear(ReflexPassed(), at(3), after_ms=11 * MINUTE_MS)
    assert [measured.sci for measured in measurements(partition)] == [0.85, 1.0]
    assert dict(partition.state.window.counts) == {"decided.reflex": 1}
    assert partition.state.window.closed == ()
    assert partition.state.rulings == ()


def test_a_clock_that_is_set_back_forgets_nothing():
    partition = swarm()
    partition.hear(CONTRARY, at(1))
    partition.hear(CONTRARY, at(2), after_ms=-5 * MINUTE_MS)
    assert partition.state.window.count_of("precedents") == 4


def test_the_state_stays_small_whatever_the_load():
    partition = swarm()
    sizes = []
    for number in range(6000):
        run_exchange(partition, number, ReflexPassed(), felt(similar(name=f"p-{number}")))
        if number in (2999, 5999):
            sizes.append(len(encode_state(partition.state)))
    assert sizes[1] <= 1.1 * sizes[0]
    assert sizes[1] < 64_000
    assert len(partition.state.ended) <= 1024
    assert len(partition.state.rulings) == 100


def test_every_actor_on_the_path_is_watched_with_its_failures():
    assert set(WATCHED) == {
        "reflex", "intuition", "appraisal", "coherence", "breaker", "arbiter", "router", "responder"
    }  # fmt: skip
    failures = {CATALOGUE[topic].event for topic in CATALOGUE if topic.endswith(".failed")}
    assert {event.__name__ for event in failures & set(ACTOR.consumes)} == {
        *(f"{name.capitalize()}Failed" for name in WATCHED),
        *(f"{name}Failed" for name in ("Llm", "Delegate", "Act", "Guardrails")),  # they end a wait for these
    }
    assert ModeSelected in ACTOR.consumes


def test_recorded_settings_start_the_count_anew_and_unreadable_ones_change_nothing():
    partition = swarm()
    partition.hear(CONTRARY, at(1))
    unreadable = SwarmConfigured(settings={"window_ms": -1}, settings_hash="", behaviour=9)
    before = state_hash(partition.state)
    partition.fold(partition.own(unreadable))
    assert state_hash(partition.state) == before
    partition.configure(SwarmSettings(slices=5))
    assert partition.state.window == Window()
    assert partition.state.sci == 0.85


events = st.sampled_from(
    [ASKED, ReflexPassed(), FAILED, CONTRARY, felt(similar(name="p")), ended(), ended("FAILED"), ended("REJECTED")]
)


@settings(max_examples=60)
@given(st.lists(st.tuples(events, st.integers(0, 9), st.sampled_from([0, 1000, 70_000, 700_000])), max_size=60))
def test_each_measurement_is_0_05_or_more_from_the_one_before(steps: list[tuple[Event, int, int]]):
    partition = Partition(ACTOR)
    for event, number, wait_ms in steps:
        partition.hear(event, at(number), after_ms=wait_ms)
    last = 1.0
    for measured in measurements(partition):
        assert round(abs(measured.sci - last), 6) >= 0.05
        last = measured.sci
    assert partition.state.sci == last


def test_nothing_is_pending_where_there_is_no_exchange():
    partition = swarm()
    partition.hear(ASKED, Address(exchange=""))
    assert len(partition.state.pending) == 0
