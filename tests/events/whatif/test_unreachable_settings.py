"""Settings that never apply, since another one is below them: older logs hold such, and new ones are refused."""

import pytest

from actors.registry import ACTORS
from events.replay.whatif import UnfitChanges
from tests.events.replaying import verified
from tests.events.whatif.asking import live, whatif

TALK = [("noon", "Hello!"), ("noon", "What is the capital of Peru?")]
OLD = {"breaker": {"recent_falsehood_count": 6}, "swarm": {"decisions_needed": 200}}


def test_a_log_that_was_recorded_under_such_settings_verifies() -> None:
    report = verified(ACTORS.values(), live(TALK, OLD).log)
    assert report.clean, report.differences
    assert report.unverified == {}


def test_a_what_if_of_another_setting_decides_such_a_log_anew() -> None:
    report = whatif(live(TALK, OLD).log, {"breaker": {"alpha": 0.9}})
    assert report.tallies["breaker"].decided > 0
    assert report.held_by_reason == {}


def test_a_what_if_that_would_turn_a_rule_off_is_refused() -> None:
    with pytest.raises(UnfitChanges, match="breaker are not valid: recent_falsehood_count: 4 is above 'window'"):
        whatif(live(TALK, {"breaker": {"window": 3}}).log, {"breaker": {"recent_falsehood_count": 4}})
