"""Settings of alerts: when a group is over, how often it is told of again, and how much is told at most."""

from typing import Annotated

import msgspec

from schemas.event import Milliseconds

Many = Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]
AtOnce = Annotated[int, msgspec.Meta(ge=1, le=400)]


class AlertsSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How alerts are grouped over time.

    Attributes:
        quiet_ms: A group is over once nothing was added to it for so long.
        info_quiet_ms: The same for severity info, which tells of an act, done when it is told.
        lapse_ms: The same for a condition that an event ends: it is held open so long for want of that event.
        session_lapse_ms: The same for a condition of one session, since most sessions are left and not ended.
        repeat_ms: A group that goes on is announced again after so long, and whenever its count has doubled.
        most_a_minute: Announcements of one severity in a minute; the rest are counted, and made in a later minute.
        most_an_agent: How many of them may be one agent's.
        most_of_a_topic: Groups of one topic at once. Beyond, what would open another is counted in one for all of them.
        most_of_an_agent: The same for one agent and topic.
        at_once: Groups that one look at the time ends, and as many that it announces; the next comes a second later.
        rest_ms: Time between two looks at least.
    """

    quiet_ms: Milliseconds = 900_000
    info_quiet_ms: Milliseconds = 60_000
    lapse_ms: Milliseconds = 86_400_000
    session_lapse_ms: Milliseconds = 21_600_000
    repeat_ms: Milliseconds = 300_000
    most_a_minute: Many = 60
    most_an_agent: Many = 20
    most_of_a_topic: Many = 2_000
    most_of_an_agent: Many = 20
    at_once: AtOnce = 100
    rest_ms: Milliseconds = 10_000
