"""A log that was recorded before a setting was taken out is decided under the settings that are left."""

from collections.abc import Sequence

import msgspec
import pytest

from actors.registry import ACTORS
from events.errors import Misconfigured
from events.log import Stored
from schemas.identity import content_hash
from tests.events.replaying import verified
from tests.events.whatif.asking import live, whatif

TALK = [("noon", "Hello!"), ("noon", "What is the capital of Peru?")]
WARM = {"base_scores": {"RESPOND": 0.9}, "thresholds": {"warm": 0.5}}


def with_settings_that_have_gone(log: Sequence[Stored]) -> list[Stored]:
    """The log as a release would have recorded it whose router had two settings more, one of them deeper."""

    def recorded(each: Stored) -> Stored:
        if not each.subject.endswith("router.configured"):
            return each
        body = msgspec.json.decode(each.data)
        body["settings"] = {**body["settings"], "gone": 1}
        body["settings"]["thresholds"]["gone"] = 2
        body["settings_hash"] = content_hash(body["settings"])
        return msgspec.structs.replace(each, data=msgspec.json.encode(body))

    return [recorded(each) for each in log]


@pytest.fixture
def log() -> list[Stored]:
    return with_settings_that_have_gone(live(TALK, {"router": WARM}).log)


def test_the_other_settings_stay_in_force(log: list[Stored]) -> None:
    report = verified(ACTORS.values(), log)
    assert report.clean, report.differences
    assert report.unverified == {}


def test_a_what_if_changes_what_is_left_and_refuses_what_has_gone(log: list[Stored]) -> None:
    assert whatif(log, {"router": {"act": False}}).changed == 0
    report = whatif(log, {"router": {"base_scores": {"RESPOND": 0.0}}})
    assert report.tallies["router"].different > 0
    with pytest.raises(Misconfigured, match="gone"):
        whatif(log, {"router": {"gone": 3}})
