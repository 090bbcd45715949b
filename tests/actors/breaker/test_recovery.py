"""Circuit-breaker.md, "State Machine" and "Recovery Mechanism": how trust falls, and the way back to NORMAL."""

from hypothesis import given
from hypothesis import strategies as st

from actors.breaker.settings import BreakerSettings
from tests.actors.breaker.builders import GOOD, LONG, VIOLATING, Talk
from tests.each import each

PATIENT = BreakerSettings(breakers_in_session=100, recent_falsehood_count=100, violations_above=100)
"""Settings without the rules over a session's life, so that the machine is seen alone."""


def test_a_new_session_is_in_normal_with_trust_05():
    """State NORMAL."""
    machine = Talk().machine
    assert (machine.state, machine.trust) == ("NORMAL", 0.5)


@each(
    ("falsehood", "trusts"),
    [
        (0.0, [0.65, 0.755, 0.8285, 0.87995, 0.915965]),
        (0.05, [0.635, 0.7295, 0.79565, 0.841955, 0.874368]),
        (0.5, [0.5, 0.5, 0.5, 0.5, 0.5]),
        (0.65, [0.455, 0.4235, 0.40145, 0.386015]),
    ],
)
def test_in_normal_trust_is_a_moving_average_of_one_minus_falsehood(falsehood: float, trusts: list[float]):
    """NORMAL to NORMAL; session memory, trust EMA."""
    talk = Talk(settings=PATIENT)
    heard = []
    for _ in trusts:
        talk.say(falsehood)
        heard.append(talk.last.standing.trust)
    assert heard == trusts


@each(("decimals", "trust"), [(0.1, 0.62), (0.123456, 0.612963), (0.333333, 0.55), (0.6499999, 0.455)])
def test_trust_is_rounded_to_six_decimals_in_state_and_event(decimals: float, trust: float):
    talk = Talk(decimals)
    assert talk.last.standing.trust == trust == talk.machine.trust


def test_normal_to_violated_multiplies_trust_by_03_and_counts():
    talk = Talk(VIOLATING)
    standing = talk.last.standing
    assert (standing.state_before, standing.state) == ("NORMAL", "VIOLATED")
    assert (standing.trust_before, standing.trust) == (0.5, 0.15)
    assert (standing.violations, standing.attempts, standing.attempt_turns) == (1, 0, 0)


@each(("falsehood", "characters"), [(0.7, 10), (1.0, 10), (0.55, LONG)])
def test_how_false_a_violation_was_does_not_change_what_it_costs(falsehood: float, characters: int):
    talk = Talk(0.0)
    talk.say(falsehood, characters=characters)
    assert talk.last.standing.trust == 0.195


def test_violated_to_recovery_by_the_next_input_which_is_the_first_turn():
    talk = Talk(VIOLATING)
    assert talk.say(0.0) == ["recovery_started", "withheld"]
    started, withheld = talk.said[-2:]
    assert (started.by, started.standing.trust, started.standing.attempts) == ("input", 0.15, 1)  # type: ignore[attr-defined]
    assert (withheld.standing.trust, withheld.standing.attempt_turns) == (0.405, 1)  # type: ignore[attr-defined]


def test_violated_to_recovery_by_the_timer_which_is_no_turn():
    talk = Talk(VIOLATING)
    assert talk.wake() == ["recovery_started"]
    assert (talk.last.by, talk.last.standing.attempts, talk.last.standing.attempt_turns) == ("timer", 1, 0)
    assert talk.say(0.0) == ["withheld"]
    assert talk.machine.attempts == 1


def test_a_trip_asks_to_be_woken_after_15_minutes_and_the_attempt_after_a_day_of_calm():
    talk = Talk(VIOLATING)
    assert talk.last.wake_after_ms == 15 * 60_000
    talk.say(0.0)
    assert talk.said[-2].wake_after_ms == 24 * 3_600_000  # type: ignore[attr-defined]


@each("set_by", ["forged_id.input.received", "forged_id.arbiter.escalated", "forged_id.breakers.x"])
def test_another_timer_starts_no_recovery(set_by: str):
    talk = Talk(VIOLATING)
    assert talk.wake(set_by) == []
    assert talk.machine.state == "VIOLATED"


@each("before", [(), (GOOD,), (VIOLATING, GOOD), (VIOLATING,) * 3])
def test_a_timer_that_comes_late_changes_nothing(before: tuple[float, ...]):
    talk = Talk(*before)
    machine = talk.machine
    assert talk.wake() == []
    assert talk.machine == machine


@each(("falsehood", "turns"), [(0.0, 3), (0.1, 3), (0.2, 4), (0.25, 4), (0.3, 5), (0.35, 7), (0.37, 8), (0.38, 9)])
def test_recovery_to_normal_takes_sustained_good_turns(falsehood: float, turns: int):
    """RecoveryPossible. With its six decimals the real machine takes one turn fewer at 0.37 than the integer model."""
    talk = Talk(VIOLATING, settings=PATIENT)
    heard = [talk.say(falsehood) for _ in range(turns)]
    assert heard[0] == ["recovery_started", "withheld"]
    assert heard[1:-1] == [["withheld"]] * (turns - 2)
    assert heard[-1] == ["recovered", "cleared"]
    assert (talk.machine.state, talk.machine.attempts, talk.machine.attempt_turns) == ("NORMAL", 0, 0)
    assert talk.machine.trust >= 0.6


def test_recovery_to_normal_at_a_trust_of_exactly_06():
    settings = BreakerSettings(initial_trust=0.8, violation_factor=0.5, alpha=0.5)
    talk = Talk(VIOLATING, settings=settings)
    assert talk.say(0.2) == ["recovery_started", "recovered", "cleared"]
    assert talk.machine.trust == 0.6


@each("falsehood", [0.4, 0.5, 0.65])
def test_recovery_to_terminated_where_falsehood_of_04_and_more_uses_up_every_attempt(falsehood: float):
    """RECOVERY to VIOLATED after ten turns, to TERMINATED after three such attempts."""
    talk = Talk(VIOLATING, settings=PATIENT)
    heard = [talk.say(falsehood) for _ in range(30)]
    assert heard[9] == heard[19] == ["attempt_failed", "withheld"]
    assert heard[10] == heard[20] == ["recovery_started", "withheld"]
    assert heard[29] == ["terminated"]
    assert talk.last.reason == "attempt_budget"


def test_recovery_to_violated_when_an_attempt_used_up_its_turns_leaves_trust_as_it_is():
    talk = Talk(VIOLATING, *[0.5] * 9, settings=PATIENT)
    before = talk.machine.trust
    talk.say(0.5)
    failed, withheld = talk.said[-2:]
    expected = round(0.15 + 0.7 * before, 6)
    assert failed.standing.trust == withheld.standing.trust == expected  # type: ignore[attr-defined]
    assert failed.wake_after_ms == 15 * 60_000  # type: ignore[attr-defined]
    assert (talk.machine.state, talk.machine.attempts) == ("VIOLATED", 1)


def test_recovery_to_violated_multiplies_trust_by_05_and_counts():
    talk = Talk(VIOLATING, 0.0)
    assert talk.say(VIOLATING) == ["tripped"]
    standing = talk.last.standing
    assert (standing.state_before, standing.state, standing.violations) == ("RECOVERY", "VIOLATED", 2)
    assert (standing.trust_before, standing.trust) == (0.405, 0.2025)


def test_a_violation_that_begins_an_attempt_fails_it_at_once():
    talk = Talk(VIOLATING)
    assert talk.say(VIOLATING) == ["recovery_started", "tripped"]
    assert (talk.machine.trust, talk.machine.attempts, talk.machine.breakers.total) == (0.075, 1, 2)


def test_each_violation_makes_recovery_harder():
    """TrustDegradationOnViolation, exponential decay: 0.5, 0.15, 0.075, 0.0375 ..."""
    talk = Talk(settings=PATIENT)
    trusts = []
    for _ in range(4):
        talk.say(VIOLATING)
        trusts.append(talk.machine.trust)
    assert trusts == [0.15, 0.075, 0.0375, 0.01875]


def test_recovery_to_normal_may_succeed_in_the_third_attempt():
    talk = Talk(VIOLATING, VIOLATING, VIOLATING, settings=PATIENT)
    assert talk.machine.attempts == 2
    assert [talk.say(0.0)[-1] for _ in range(3)] == ["withheld", "withheld", "cleared"]
    assert (talk.machine.state, talk.machine.attempts) == ("NORMAL", 0)


def test_recovery_to_terminated_by_a_violation_in_the_third_attempt():
    talk = Talk(VIOLATING, VIOLATING, VIOLATING, 0.0, settings=PATIENT)
    assert talk.machine.attempts == 3
    assert talk.say(VIOLATING) == ["terminated"]
    assert (talk.last.reason, talk.last.violation, talk.last.standing.violations) == (
        "attempts_used_up",
        "role_confusion",
        4,
    )


def test_success_gives_three_new_attempts():
    """RecoveryAttemptsBounded: attempts count from the last success on."""
    talk = Talk(VIOLATING, VIOLATING, *[0.0] * 4, settings=PATIENT)
    assert talk.machine.state == "NORMAL"
    talk.say(VIOLATING)
    assert (talk.machine.state, talk.machine.attempts) == ("VIOLATED", 0)


def test_the_input_that_rebuilds_trust_is_answered():
    talk = Talk(VIOLATING, 0.0, 0.0)
    assert talk.say(0.0) == ["recovered", "cleared"]
    recovered, cleared = talk.said[-2:]
    assert (recovered.standing.state_before, recovered.standing.state) == ("RECOVERY", "NORMAL")  # type: ignore[attr-defined]
    assert (cleared.standing.state_before, cleared.standing.state) == ("NORMAL", "NORMAL")  # type: ignore[attr-defined]


@given(st.lists(st.integers(0, 100).map(lambda hundredths: hundredths / 100), min_size=30, max_size=30))
def test_eventual_recovery_or_termination_within_thirty_inputs_of_a_violation(falsehoods: list[float]):
    """EventualRecovery, on the real machine: three attempts of ten turns at most, whatever is said."""
    talk = Talk(VIOLATING, settings=PATIENT)
    states = []
    for falsehood in falsehoods:
        talk.say(falsehood)
        states.append(talk.machine.state)
    assert {"NORMAL", "TERMINATED"} & set(states)


@each("before", [(VIOLATING,), (VIOLATING, 0.0), (VIOLATING,) * 3], named=str)
@each("falsehood", [0.0, 0.5])
def test_safety_nothing_is_processed_in_violated_recovery_or_terminated(before: tuple[float, ...], falsehood: float):
    """SafetyInvariant; states VIOLATED, RECOVERY and TERMINATED."""
    talk = Talk(*before)
    assert talk.machine.state != "NORMAL"
    assert talk.say(falsehood)[-1] == "withheld"


def test_violated_to_recovery_by_an_operator():
    """VIOLATED to RECOVERY."""
    talk = Talk(VIOLATING)
    assert talk.order_recovery() == ["recovery_started"]
    assert (talk.last.by, talk.machine.state, talk.machine.attempts) == ("operator", "RECOVERY", 1)


@each("said", [(), (VIOLATING, GOOD), (VIOLATING, VIOLATING, VIOLATING)], named=str)
def test_an_order_to_recover_changes_nothing_outside_of_violated(said: tuple[float, ...]):
    talk = Talk(*said)
    before = talk.machine
    assert talk.order_recovery() == []
    assert talk.machine == before
