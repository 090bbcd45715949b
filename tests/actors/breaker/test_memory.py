"""What a partition remembers of its sessions, and for how long; its settings."""

import msgspec
import pytest

from actors.breaker import ACTOR
from actors.breaker.settings import BreakerSettings
from schemas.persistent import decode_state, encode_state
from schemas.vocabulary.breaker import BreakerFailed
from tests.actors.breaker.builders import GOOD, HOUR_MS, VIOLATING, Talk, appraised, layer, terminated
from tests.each import each

DAY_MS = 24 * HOUR_MS


def test_five_falsehoods_and_balances_are_kept():
    talk = Talk()
    for place in range(8):
        talk.say(place / 100, truth=0.5)
    assert talk.machine.falsehoods == (0.03, 0.04, 0.05, 0.06, 0.07)
    assert talk.machine.balances == (0.47, 0.46, 0.45, 0.44, 0.43)
    assert talk.machine.interactions == 8


def test_balance_is_the_mean_over_layers_of_truth_minus_falsehood():
    talk = Talk()
    talk.hear(appraised(layer(0.1, truth=0.9), layer(0.5, truth=0.2), layer(0.3, truth=0.3)))
    assert talk.machine.balances == (0.166667,)


def test_a_session_without_a_mark_is_forgotten_after_at_most_two_lifetimes():
    talk = Talk(0.0, 0.0, 0.0)
    assert talk.machine.interactions == 3
    talk.say(0.0, after_ms=2 * DAY_MS)
    assert (talk.machine.interactions, talk.machine.trust) == (1, 0.65)


def test_a_session_is_remembered_for_at_least_its_lifetime():
    talk = Talk(0.0)
    talk.say(0.0, after_ms=DAY_MS - 1)
    assert talk.machine.interactions == 2


def test_a_session_with_a_violation_is_forgotten_in_the_end():
    talk = Talk(VIOLATING)
    assert talk.say(0.0, after_ms=60 * DAY_MS) == ["cleared"]


@each("days", [29, 61, 400, 10_000])
def test_a_terminated_session_is_never_forgotten(days: int):
    talk = terminated()
    before = talk.machine
    assert talk.say(0.0, after_ms=days * DAY_MS) == ["withheld"]
    assert talk.machine == before
    assert talk.reset() == ["reset"]
    assert talk.say(0.0) == ["cleared"]


def test_of_a_terminated_session_four_numbers_are_kept():
    state = terminated().partition.state
    assert (len(state.sessions), len(state.marked), len(state.terminated)) == (0, 0, 1)
    assert len(encode_state(state.terminated)) < 120


FEW = BreakerSettings(terminated_sessions=2)


def full() -> Talk:
    """A partition whose record of terminated sessions has no room."""
    talk = Talk(GOOD, settings=FEW, session="known")
    for name in ("first", "second"):
        talk.session = name
        for _ in range(3):
            talk.say(VIOLATING)
    return talk


def test_when_the_record_of_terminated_sessions_is_full_a_new_session_is_withheld_and_said_to_be():
    talk = full()
    talk.session = "new"
    assert talk.say(GOOD) == ["filled", "withheld"]
    assert (talk.said[-2].terminated, talk.last.because) == (2, "record_full")  # type: ignore[attr-defined]
    assert talk.say(GOOD) == ["filled", "withheld"]
    talk.end()
    assert len(talk.partition.state.sessions) + len(talk.partition.state.marked) == 1, "nothing is kept of it"


def test_when_the_record_is_full_known_sessions_go_on_and_terminated_ones_stay_so():
    talk = full()
    talk.session = "known"
    assert talk.say(GOOD) == ["cleared"]
    talk.session = "first"
    assert talk.say(GOOD) == ["withheld"]
    assert talk.last.because == "state"


def test_a_reset_makes_room_in_the_record():
    talk = full()
    talk.session = "first"
    talk.reset()
    talk.session = "new"
    assert talk.say(GOOD) == ["cleared"]


def test_a_session_stays_marked_after_its_trust_was_rebuilt_and_after_a_reset():
    rebuilt, reset = Talk(VIOLATING, 0.0, 0.0, 0.0), Talk(VIOLATING)
    reset.reset()
    reset.say(0.1)
    for talk in (rebuilt, reset):
        before = talk.machine
        assert before.state == "NORMAL"
        talk.say(0.0, after_ms=3 * DAY_MS)
        assert talk.machine.interactions == before.interactions + 1


def test_what_the_shorter_memory_still_holds_is_not_taken_for_the_newer():
    talk = Talk(0.0, 0.0)
    talk.say(VIOLATING)
    assert talk.machine.state == "VIOLATED"
    talk.reset()
    assert talk.machine.interactions == 0


def test_ten_thousand_sessions_past_their_lifetime_leave_nothing():
    talk = Talk()
    for number in range(10_000):
        talk.session = f"session-{number}"
        talk.say(VIOLATING if number % 3 == 0 else GOOD)
    talk.session = "much later"
    talk.say(GOOD, after_ms=61 * DAY_MS)
    state = talk.partition.state
    assert [len(each) for each in (state.sessions, state.marked, state.exchanges)] == [1, 0, 1]


def test_a_snapshot_holds_the_sessions_whole():
    talk = Talk(0.1, VIOLATING, 0.2)
    talk.end()
    restored = decode_state(encode_state(talk.partition.state), ACTOR.state_type)
    assert restored == talk.partition.state


def test_its_own_failure_leaves_the_sessions_alone():
    talk = Talk(0.1)
    before = talk.machine
    failed = BreakerFailed(reason="undecodable", error="", failed_seq=1, failed_topic="x")
    talk.partition.fold(talk.partition.own(failed))
    assert talk.machine == before


def test_new_settings_hold_from_there_on_and_keep_the_sessions():
    talk = Talk(0.0)
    talk.partition.configure(BreakerSettings(role_confusion_above=0.2))
    assert talk.say(0.3) == ["tripped"]
    assert talk.machine.interactions == 2


@each(
    ("settings", "complaint"),
    [
        ({"guarded_below": 0.7}, "'guarded_below' is above 'cautious_below'"),
        ({"marked_lifetime_ms": DAY_MS}, "'marked_lifetime_ms' must be at least twice"),
        ({"alpha": 0.0}, "alpha"),
        ({"violation_factor": 1.0}, "violation_factor"),
        ({"max_attempts": 0}, "max_attempts"),
        ({"role_confusion": 0.7}, "role_confusion"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, float], complaint: str):
    with pytest.raises(msgspec.ValidationError, match=complaint):
        msgspec.convert(settings, BreakerSettings)
