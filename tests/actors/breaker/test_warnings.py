"""A warning before a session ends: the stance that is reported, and the events that alerts are made of."""

from actors.breaker.settings import BreakerSettings
from schemas.vocabulary.breaker import BreakerCleared
from tests.actors.breaker.builders import GOOD, VIOLATING, Talk, name_of
from tests.each import each


def test_a_session_in_danger_is_warned_of_before_its_input_is_answered():
    talk = Talk(0.62)
    assert [name_of(event) for event in talk.said] == ["warned", "cleared"]
    assert talk.warnings == ["trust"]
    cleared = talk.last
    assert isinstance(cleared, BreakerCleared)
    assert cleared.standing.stance == "guarded"


def test_a_danger_is_told_once_and_so_is_its_end():
    talk = Talk(0.62, 0.62, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    assert talk.warnings == ["trust", "calmed"]
    assert talk.last.standing.stance == "normal"


def test_an_ordinary_session_is_never_warned_of():
    assert Talk(*[GOOD] * 20).warnings == []


@each("end", [Talk.reset, lambda talk: talk.say(VIOLATING)])
def test_after_a_trip_or_a_reset_nothing_is_warned_of(end):  # type: ignore[no-untyped-def]
    talk = Talk(0.62)
    end(talk)
    assert talk.machine.warned is False


def test_a_session_that_time_alone_has_recovered_is_answered_guardedly():
    talk = Talk(VIOLATING)
    talk.wake()
    assert talk.calm() == ["recovered"]
    assert (talk.machine.state, talk.machine.trust, talk.machine.attempts) == ("NORMAL", 0.15, 0)
    assert talk.warnings == ["trust"]
    assert talk.say(GOOD) == ["cleared"]
    assert talk.last.standing.stance == "guarded"


def test_calm_ends_no_attempt_that_a_violation_has_overtaken():
    talk = Talk(VIOLATING, 0.0, VIOLATING, 0.0)
    assert talk.machine.state == "RECOVERY"
    assert talk.calm(after_ms=1, early_ns=1) == []
    assert talk.machine.state == "RECOVERY"


@each("said", [(), (GOOD,), (VIOLATING,), (VIOLATING,) * 3], named=str)
def test_calm_changes_nothing_outside_of_recovery(said: tuple[float, ...]):
    talk = Talk(*said)
    before = talk.machine
    assert talk.wake("forged_id.breaker.recovery_started", after_ms=0) == []
    assert talk.machine == before


PATIENT = BreakerSettings(breakers_in_session=1000, violations_above=1000)


@each(
    ("falsehoods", "danger"),
    [((0.0, 0.0, 0.61, 0.61), "recent_falsehood"), ((0.0, 0.0, 0.0, 0.61, 0.61), "recent_falsehood")],
)
def test_one_high_falsehood_before_the_last_is_a_danger(falsehoods: tuple[float, ...], danger: str):
    talk = Talk(*falsehoods)
    assert talk.warnings == [danger]
    assert talk.say(0.61) == ["terminated"]


def test_a_trend_of_balances_is_warned_of_before_it_ends_a_session():
    talk = Talk(0.5, 0.5, settings=PATIENT)
    while talk.machine.state != "TERMINATED":
        talk.say(0.55, truth=0.0)
    assert talk.last.reason == "balance_trend"
    assert talk.warnings == ["balance_trend"]


def test_a_share_of_refusals_is_warned_of_before_it_ends_a_session():
    talk = Talk()
    while talk.machine.state != "TERMINATED":
        talk.say(GOOD)
        if talk.exchanges > 4:
            talk.end()
    assert talk.last.reason == "refusal_share"
    assert talk.warnings == ["refusal_share"]


def test_a_session_whose_next_violation_is_its_last_is_answered_with_caution():
    talk = Talk(VIOLATING, VIOLATING, *[0.0] * 12)
    assert (talk.machine.state, talk.last.standing.stance) == ("NORMAL", "cautious")
    assert talk.say(VIOLATING) == ["terminated"]
