"""Settings of alerts: when a group is over, how often it is announced again, and limits of announcements."""

from typing import Annotated

import msgspec

from schemas.event import Milliseconds

Many = Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]
"""A number of announcements or groups."""

AtOnce = Annotated[int, msgspec.Meta(ge=1, le=400)]
"""A number of alerts that one decision may emit."""


class AlertsSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How alerts are grouped over time. A group holds the events of one kind and one agent, session or the like.

    Attributes:
        quiet_ms: A group is over once nothing was added to it for this long.
        info_quiet_ms: Instead of ``quiet_ms`` for severity info, which reports something that is already done.
        lapse_ms: Instead of ``quiet_ms`` for a group that an event would end, in case that event never comes.
        session_lapse_ms: Instead of ``lapse_ms`` for a group of one session: most sessions are left without an end.
        repeat_ms: An open group is announced again after this long, and whenever its count has doubled.
        most_a_minute: Most announcements of one severity in a minute; further ones are counted, and made in a later
            minute.
        most_an_agent: Most of these announcements for one agent.
        most_of_a_topic: Most open groups of one topic (a type of event). Further events are counted in one common
            group.
        most_of_an_agent: Most open groups of one topic for one agent. Further events get a common group, too.
        at_once: Most groups that one timer ends, and most that it announces; the next timer follows a second later.
        rest_ms: Least time between two timers.
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
