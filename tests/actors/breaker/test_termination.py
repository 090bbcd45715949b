"""Circuit-breaker.md, "Termination Conditions" and "Integration with Session Memory": what ends a session for good."""

from collections.abc import Callable
from itertools import product

import msgspec

from actors.breaker.machine import Machine, ViolationCounts, broken_rule
from actors.breaker.settings import BreakerSettings
from schemas.vocabulary.responder import Action, Stage
from tests.actors.breaker.builders import GOOD, HOUR_MS, LONG, VIOLATING, Talk, appraised, ended, name_of, terminated
from tests.each import each

DEFAULT = BreakerSettings()


def recovered(times: int, settings: BreakerSettings) -> Talk:
    """A session that violated and rebuilt its trust so many times."""
    talk = Talk(settings=settings)
    for _ in range(times):
        talk.say(VIOLATING)
        while talk.machine.state != "NORMAL":
            talk.say(0.0)
    return talk


def test_boundary_testing_the_third_breaker_of_a_session_terminates_it():
    talk = Talk(VIOLATING, VIOLATING)
    assert talk.say(VIOLATING) == ["recovery_started", "terminated"]
    assert talk.last.reason == "breakers_in_session"


def test_breakers_count_over_the_session_s_life_through_recoveries():
    talk = recovered(2, DEFAULT)
    assert talk.say(VIOLATING) == ["terminated"]
    assert talk.last.reason == "breakers_in_session"
    assert talk.last.standing.state_before == "NORMAL"


def test_both_kinds_of_breaker_count_together_and_are_told_apart():
    """Session memory, violation accumulation."""
    talk = Talk(VIOLATING)
    talk.say(0.55, characters=LONG)
    assert talk.machine.breakers == ViolationCounts(role_confusion=1, context_saturation=1)
    talk.say(0.55, characters=LONG)
    assert (talk.machine.state, talk.machine.breakers) == ("TERMINATED", ViolationCounts(1, 2))


def test_persistent_violations_terminate_more_than_six_by_a_rule_of_their_own():
    """PersistentViolationsTerminate."""
    settings = BreakerSettings(breakers_in_session=100)
    talk = recovered(6, settings)
    assert talk.machine.state == "NORMAL"
    assert talk.say(VIOLATING) == ["terminated"]
    assert (talk.last.reason, talk.last.standing.violations) == ("violation_count", 7)


def test_a_violation_that_terminates_costs_trust_too():
    talk = Talk(VIOLATING, VIOLATING, VIOLATING)
    assert (talk.last.standing.trust_before, talk.last.standing.trust) == (0.075, 0.0375)


@each("highs", list(product([False, True], repeat=5)))
def test_boundary_testing_three_of_the_last_five_above_06_terminate_with_the_latest(highs: tuple[bool, ...]):
    talk = Talk()
    heard = [talk.say(0.61 if high else 0.0)[-1] for high in highs]
    assert heard[:4] == ["cleared"] * 4, "fewer than five were seen"
    assert heard[4] == ("terminated" if sum(highs) >= 3 and highs[-1] else "cleared")


@each(
    ("falsehoods", "last"),
    [
        ((0.65, 0.65, 0.9, 0.0, 0.0), "withheld"),
        ((0.65, 0.65, 0.9, 0.0, 0.0, 0.0, 0.0), "cleared"),
        ((0.601, 0.601, 0.601, 0.0, 0.0), "cleared"),
        ((0.601, 0.601, 0.601, 0.0, 0.0, 0.0, 0.601), "cleared"),
        ((0.601, 0.601, 0.601, 0.0, 0.601), "terminated"),
        ((0.601, 0.601, 0.601, 0.601, 0.601), "terminated"),
    ],
    named=str,
)
def test_a_calm_input_ends_no_session_by_what_came_before_it(falsehoods: tuple[float, ...], last: str):
    talk = Talk(*falsehoods)
    assert name_of(talk.last) == last


@each("start", [Talk.wake, Talk.order_recovery, lambda talk: talk.say(0.0)])
def test_a_recovery_begins_with_a_clean_window_however_it_is_started(start: Callable[[Talk], object]):
    talk = Talk(0.61, 0.61, VIOLATING)
    start(talk)
    assert talk.machine.state == "RECOVERY"
    assert talk.machine.falsehoods in ((), (0.0,))
    assert len(talk.machine.falsehoods) == len(talk.machine.balances)


@each(("balance", "state"), [(0.0, "NORMAL"), (-0.3, "NORMAL"), (-0.31, "TERMINATED")])
def test_the_mean_of_balances_is_judged_with_an_input_that_lowers_it(balance: float, state: str):
    talk = Talk()
    for _ in range(4):
        talk.say(0.6, truth=0.0)
    talk.say(0.5, truth=0.5 + balance)
    assert talk.machine.state == state


def test_a_refusal_does_not_have_the_window_judged_again():
    talk = Talk(0.601, 0.601, 0.601, 0.0, 0.0)
    assert talk.end() == []
    assert talk.machine.state == "NORMAL"


def test_a_calm_input_is_not_ended_by_settings_that_count_old_violations_otherwise():
    talk = Talk(VIOLATING, 0.0, 0.0, 0.0)
    assert talk.machine.state == "NORMAL"
    talk.partition.configure(BreakerSettings(breakers_in_session=1))
    assert talk.say(0.0) == ["cleared"]
    assert talk.say(VIOLATING) == ["terminated"]


def test_falsehood_of_exactly_06_is_not_high():
    assert Talk(*[0.6] * 20).machine.state == "NORMAL"


def test_high_falsehood_long_ago_is_out_of_the_window():
    talk = Talk(0.61, 0.61, 0.0, 0.0, 0.0)
    assert talk.say(0.61) == ["cleared"]
    assert talk.say(0.61) == ["cleared"]
    assert talk.say(0.61) == ["terminated"]
    assert talk.last.reason == "recent_falsehood"


@each(("balance", "state"), [(-0.31, "TERMINATED"), (-0.3, "NORMAL"), (0.0, "NORMAL")])
def test_boundary_testing_a_mean_balance_of_the_last_five_below_minus_03_terminates(balance: float, state: str):
    talk = Talk()
    for _ in range(5):
        assert talk.machine.state == "NORMAL"
        talk.say(0.5, truth=0.5 + balance)
    assert talk.machine.state == state
    assert getattr(talk.last, "reason", None) == ("balance_trend" if state == "TERMINATED" else None)


def test_the_balance_rule_looks_at_the_mean_of_every_window_exactly():
    for hundredths in product([-60, -30, 0, 30], repeat=5):
        machine = Machine(falsehoods=(0.0,) * 5, balances=tuple(each / 100 for each in hundredths))
        expected = sum(hundredths) < -150 and hundredths[-1] < -30
        assert (broken_rule(machine, DEFAULT) == "balance_trend") is expected, hundredths


def test_the_refusal_rule_looks_at_every_share_exactly():
    for interactions in range(40):
        for refusals in range(interactions + 1):
            machine = Machine(interactions=interactions, refusals=refusals)
            expected = interactions >= 10 and 10 * refusals > 4 * interactions
            assert (broken_rule(machine, DEFAULT, refused=True) == "refusal_share") is expected, (
                refusals,
                interactions,
            )
            assert broken_rule(machine, DEFAULT) is None


def refused(times: int, of: int, early: bool = False) -> Talk:
    """A session of which the first inputs were refused by reflex, before their appraisal or after it."""
    talk = Talk()
    for place in range(of):
        if early and place < times:
            talk.end(exchange=f"exchange-{talk.exchanges + 1}")
        talk.say(GOOD)
        if not early and place < times:
            talk.end()
    return talk


def test_a_refusal_rate_of_exactly_40_percent_is_borne():
    assert refused(4, of=10).machine.state == "NORMAL"


@each("early", [False, True])
@each("times", range(5, 10))
def test_a_calm_input_ends_no_session_by_the_refusals_before_it(times: int, early: bool):
    talk = refused(times, of=15, early=early)
    assert talk.machine.state == "NORMAL"
    assert talk.machine.refusals == times


@each("early", [False, True])
def test_boundary_testing_a_refusal_rate_above_40_percent_terminates_with_a_refusal_from_the_tenth_interaction_on(
    early: bool,
):
    talk = refused(9, of=9, early=early)
    assert talk.machine.state == "NORMAL"
    if early:
        talk.end(exchange="exchange-10")
        assert talk.say(GOOD) == ["terminated"]
    else:
        assert talk.say(GOOD) == ["cleared"]
        assert talk.end() == ["terminated"]
    assert talk.last.reason == "refusal_share"


def test_the_refusal_that_is_one_too_many_terminates_at_once():
    talk = refused(4, of=11)
    assert talk.end() == ["terminated"]
    assert (talk.last.reason, talk.last.standing.state_before) == ("refusal_share", "NORMAL")
    assert talk.say(GOOD) == ["withheld"]


@each("stage", ["REFLEX", "INTUITION", "COHERENCE"])
@each("action", ["BLOCKED", "REJECTED"])
def test_an_exchange_refused_by_an_earlier_guard_is_a_refusal(stage: Stage, action: Action):
    talk = Talk(GOOD)
    talk.end(ended(stage, action))
    assert talk.machine.refusals == 1


@each(
    ("stage", "action"),
    [
        ("REFLEX", "FAILED"),
        ("COHERENCE", "FAILED"),
        ("BREAKER", "WITHHELD"),
        ("ARBITER", "REJECTED"),
        ("DELIBERATIVE", "EXECUTED"),
        ("DELIBERATIVE", "FAILED"),
    ],
)
def test_no_other_end_is_a_refusal(stage: Stage, action: Action):
    talk = Talk(GOOD)
    assert talk.end(ended(stage, action)) == []
    assert talk.machine.refusals == 0


def test_a_refusal_counts_the_same_before_and_after_its_appraisal():
    early, late = Talk(GOOD), Talk(GOOD)
    late.say(0.3)
    late.end()
    assert early.end(exchange="exchange-2") == []
    assert early.machine.refusals == 0, "it never counts without its input"
    assert early.say(0.3) == ["cleared"]
    assert early.machine == late.machine


def test_a_refusal_counts_once_however_often_it_is_told():
    talk = Talk(GOOD)
    for _ in range(3):
        talk.end()
    assert talk.machine.refusals == 1


def test_a_refusal_of_an_unknown_exchange_is_not_counted():
    talk = Talk(GOOD)
    talk.end(exchange="never appraised")
    talk.end(exchange="")
    assert talk.machine.refusals == 0


@each("falsehood", [0.0, 0.5, 1.0])
def test_terminated_is_final_for_every_input(falsehood: float):
    """State TERMINATED; TerminalStateStable."""
    talk = terminated()
    before = talk.machine
    assert [talk.say(falsehood) for _ in range(20)] == [["withheld"]] * 20
    assert talk.machine == before
    assert talk.last.standing.falsehood == falsehood


def test_terminated_is_final_for_timers_and_refusals():
    """State TERMINATED; TerminalStateStable."""
    talk = terminated()
    before = talk.machine
    assert talk.wake() == talk.end() == []
    assert talk.machine == before


def test_a_violation_is_not_slept_off_within_the_marked_lifetime():
    talk = Talk(VIOLATING)
    talk.say(0.0, after_ms=29 * 24 * HOUR_MS)
    assert (talk.machine.state, talk.machine.breakers.total) == ("RECOVERY", 1)


def test_a_termination_cancels_the_timer():
    assert terminated().last.wake_after_ms == 0


@each("before", [(), (GOOD,), (VIOLATING,), (VIOLATING, GOOD), (VIOLATING,) * 3])
def test_an_operator_resets_a_session_in_any_state(before: tuple[float, ...]):
    talk = Talk(*before)
    state = talk.machine.state
    assert talk.reset(by="ann", why="reviewed") == ["reset"]
    assert (talk.last.by, talk.last.why, talk.last.wake_after_ms) == ("ann", "reviewed", 0)
    assert (talk.last.standing.state_before, talk.last.standing.state) == (state, "NORMAL")
    assert msgspec.structs.replace(talk.machine, reset_seq=0) == Machine()


def test_a_refusal_of_an_input_before_a_reset_counts_no_more():
    talk = Talk(*[GOOD] * 9)
    talk.reset()
    for place in range(1, 10):
        assert talk.end(exchange=f"exchange-{place}") == []
    talk.say(GOOD)
    assert (talk.machine.interactions, talk.machine.refusals) == (1, 0)
    talk.end()
    assert talk.machine.refusals == 1


def test_a_refusal_of_an_input_of_which_nothing_was_appraised_does_not_count():
    talk = Talk(GOOD)
    assert talk.hear(appraised()) == ["withheld"]
    assert talk.last.because == "unappraised"
    talk.end()
    assert (talk.machine.interactions, talk.machine.refusals) == (1, 0)


def test_after_a_reset_the_violations_of_before_count_no_more():
    talk = terminated()
    talk.reset()
    assert talk.say(0.0) == ["cleared"]
    assert talk.say(VIOLATING) == ["tripped"]
    assert talk.last.standing.violations == 1


def test_a_reset_of_one_session_leaves_the_others():
    talk = terminated("ended")
    talk.session = "another"
    talk.reset()
    talk.session = "ended"
    assert talk.machine.state == "TERMINATED"
