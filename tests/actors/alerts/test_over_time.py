"""Announced once, again as it grows, never more than the limit, and resolved in the end; nothing is counted twice."""

from collections import Counter

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.alerts.settings import AlertsSettings
from schemas.event import Event, topic_of
from schemas.persistent import encode_state
from schemas.vocabulary.alerts import Alert, AlertsScheduled
from tests.actors.alerts.builders import (
    BLOCKED,
    MINUTE_MS,
    RECOVERED,
    REJECTED,
    RESET,
    TERMINATED,
    TRIPPED,
    alerting,
    alerts_in,
    in_session,
    pass_time,
    sample,
    told,
)
from tests.actors.scenario import MS, START_NS, Address, Partition

HOUR_MS = 60 * MINUTE_MS
QUIET_MS = AlertsSettings().quiet_ms


def test_a_breaker_that_recovers_resolves_its_alert() -> None:
    alerts = alerting()
    alerts.when(TRIPPED)
    [end] = alerts_in(alerts.when(RECOVERED, after_ms=HOUR_MS))
    assert (end.status, end.count, end.resolved_by) == ("resolved", 1, "forged_id.breaker.recovered")
    assert topic_of(end) == "forged_id.alert.critical.breaker"
    assert not alerts.state.groups


def test_another_session_s_recovery_resolves_nothing() -> None:
    alerts = alerting()
    alerts.when(TRIPPED, in_session("morning"))
    assert told(alerts.when(RECOVERED, in_session("evening"))) == []


def test_a_termination_takes_the_place_of_the_trip() -> None:
    alerts = alerting()
    [trip] = alerts_in(alerts.when(TRIPPED))
    ended, begun = alerts_in(alerts.when(TERMINATED))
    assert (ended.alert, ended.status) == (trip.alert, "resolved")
    assert (begun.event, begun.status) == ("forged_id.breaker.terminated", "firing")


def test_a_red_flag_takes_the_place_of_a_mode_out_of_range_and_gives_it_back() -> None:
    alerts = alerting()
    names = ("mode_out_of_range", "mode_red_flag", "mode_out_of_range", "mode_in_range")
    seen = [told(alerts.when(sample(f"monitor.{name}", mode="RESPOND"))) for name in names]
    assert seen == [
        [("warning.monitor", "firing", 1)],
        [("warning.monitor", "resolved", 1), ("critical.monitor", "firing", 1)],
        [("critical.monitor", "resolved", 1), ("warning.monitor", "firing", 1)],
        [("warning.monitor", "resolved", 1)],
    ]


def test_what_nothing_ends_is_over_once_it_has_gone_quiet() -> None:
    alerts = alerting()
    alerts.when(BLOCKED)
    alerts.when(BLOCKED, after_ms=10 * MINUTE_MS)
    assert told(pass_time(alerts, QUIET_MS - 1)) == []
    [end] = alerts_in(pass_time(alerts, MINUTE_MS))
    assert (end.status, end.count, end.resolved_by) == ("resolved", 2, "quiet")
    assert (end.since_ns, end.last_ns - end.since_ns) == (START_NS, 10 * MINUTE_MS * MS)


def test_an_act_is_over_after_a_minute() -> None:
    alerts = alerting()
    alerts.when(sample("operator.breaker_reset_ordered"))
    assert told(pass_time(alerts, MINUTE_MS)) == [("info.operator", "resolved", 1)]


def test_a_condition_lasts_until_its_end_is_told_of_or_a_day_has_passed() -> None:
    alerts = alerting()
    alerts.when(sample("monitor.mode_out_of_range"))
    assert told(pass_time(alerts, 24 * HOUR_MS - MINUTE_MS)) == []
    [end] = alerts_in(pass_time(alerts, 2 * MINUTE_MS))
    assert end.resolved_by == "lapsed"


def test_a_session_that_was_left_is_held_open_for_six_hours() -> None:
    alerts = alerting()
    alerts.when(TRIPPED)
    assert told(pass_time(alerts, 6 * HOUR_MS - MINUTE_MS)) == []
    [end] = alerts_in(pass_time(alerts, 2 * MINUTE_MS))
    assert end.resolved_by == "lapsed"


def test_a_later_outbreak_has_the_same_name_and_begins_at_one() -> None:
    alerts = alerting()
    [first] = alerts_in(alerts.when(TRIPPED))
    alerts.when(RESET)
    [again] = [each for each in alerts_in(alerts.when(TRIPPED)) if each.status == "firing"]
    assert (again.alert, again.count) == (first.alert, 1)
    assert again.first_seq > first.first_seq


def test_a_group_that_grows_is_announced_at_twice_its_count() -> None:
    alerts = alerting()
    counts = [count for _ in range(100) for _, _, count in told(alerts.when(BLOCKED))]
    assert counts == [1, 2, 4, 8, 16, 32, 64]


def test_a_group_that_goes_on_is_announced_every_five_minutes() -> None:
    alerts = alerting()
    for _ in range(64):
        alerts.when(BLOCKED)
    later = [[count for _, _, count in told(alerts.when(BLOCKED, after_ms=MINUTE_MS))] for _ in range(10)]
    assert later == [[], [], [], [], [69], [], [], [], [], [74]]


def test_a_minute_holds_only_so_many_alerts_of_a_severity_and_the_next_says_how_many_were_held_back() -> None:
    alerts = alerting(AlertsSettings(most_a_minute=3))
    seen = [event for number in range(10) for event in alerts.when(BLOCKED, in_session("s", agent=f"a{number}"))]
    assert [each.agent for each in alerts_in(seen)] == ["a0", "a1", "a2"]
    assert told(alerts.when(TRIPPED)) == [("critical.breaker", "firing", 1)], "a severity cannot drown another"
    [next_one] = alerts_in(alerts.when(REJECTED, after_ms=MINUTE_MS))
    assert next_one.suppressed == 7
    [then] = alerts_in(alerts.when(REJECTED))
    assert then.suppressed == 0


def test_what_was_held_back_is_announced_in_the_next_minute_and_says_how_much_was() -> None:
    alerts = alerting(AlertsSettings(most_a_minute=1))
    alerts.when(BLOCKED, in_session("s", agent="first"))
    held = alerts.when(BLOCKED, in_session("s", agent="second"))
    assert told(held) == []
    assert [each.open_groups for each in held if isinstance(each, AlertsScheduled)] == [2], "a timer for it"
    [later] = alerts_in(pass_time(alerts, MINUTE_MS))
    assert (later.agent, later.status, later.count, later.suppressed) == ("second", "firing", 1, 1)


def test_what_is_over_before_there_is_room_for_it_is_not_announced() -> None:
    alerts = alerting(AlertsSettings(most_a_minute=1))
    alerts.when(TRIPPED, in_session("one"))
    alerts.when(TRIPPED, in_session("two"))
    alerts.when(RECOVERED, in_session("two"))
    assert told(pass_time(alerts, 5 * MINUTE_MS)) == []


def test_an_agent_s_flood_holds_back_no_other_agent_s_single_alert() -> None:
    alerts = alerting()
    for number in range(600):
        alerts.when(TRIPPED, in_session(f"s{number}", agent="flooded"), after_ms=10)
    [alert] = alerts_in(alerts.when(TERMINATED, in_session("s", agent="calm")))
    assert (alert.agent, alert.event, alert.count) == ("calm", "forged_id.breaker.terminated", 1)


def test_those_held_back_are_announced_in_turns_and_who_was_told_of_least_comes_first() -> None:
    limited = AlertsSettings(most_a_minute=4, most_an_agent=4)
    alerts = alerting(limited)
    for number in range(12):
        alerts.when(TRIPPED, in_session(f"s{number}", agent="flooded"))
    alerts.when(TRIPPED, in_session("one", agent="calm"), after_ms=1)
    alerts.when(TRIPPED, in_session("two", agent="calm"))
    later = alerts_in(pass_time(alerts, MINUTE_MS))
    assert [each.agent for each in later] == ["calm", "calm", "flooded", "flooded"]


def test_many_agents_at_once_do_not_keep_a_quiet_one_waiting_for_more_than_a_minute() -> None:
    alerts = alerting()
    for number in range(20):
        for agent in range(61):
            alerts.when(TRIPPED, in_session(f"s{number}", agent=f"flooder {agent}"))
    assert alerts_in(alerts.when(TRIPPED, in_session("mine", agent="quiet"))) == []
    assert "quiet" in {each.agent for each in alerts_in(pass_time(alerts, MINUTE_MS))}


def test_what_stands_for_many_is_announced_before_an_agent_s_own_that_were_held_back() -> None:
    alerts = alerting(AlertsSettings(most_of_an_agent=3, most_a_minute=1))
    for number in range(9):
        alerts.when(TRIPPED, in_session(f"s{number}"))
    [later] = alerts_in(pass_time(alerts, MINUTE_MS))
    assert (later.detail, later.count) == ("(others)", 6)


def test_an_agent_with_too_many_sessions_has_one_alert_for_the_rest_of_them() -> None:
    alerts = alerting(AlertsSettings(most_of_an_agent=2))
    seen = [event for number in range(9) for event in alerts.when(TRIPPED, in_session(f"s{number}"))]
    assert [(each.session, each.detail, each.count) for each in alerts_in(seen)] == [
        ("s0", "", 1),
        ("s1", "", 1),
        ("", "(others)", 1),
        ("", "(others)", 2),
        ("", "(others)", 4),
    ]
    assert {each.agent for each in alerts_in(seen)} == {"agent"}


def test_a_session_that_is_over_makes_room_for_another() -> None:
    alerts = alerting(AlertsSettings(most_of_an_agent=1))
    alerts.when(TRIPPED, in_session("one"))
    alerts.when(RECOVERED, in_session("one"))
    [alert] = alerts_in(alerts.when(TRIPPED, in_session("two")))
    assert (alert.session, alert.detail) == ("two", "")


def test_ten_thousand_sessions_of_an_agent_leave_room_for_every_other_alert() -> None:
    alerts = alerting(AlertsSettings(most_of_a_topic=100))
    for number in range(10_000):
        alerts.when(TRIPPED, in_session(f"s{number}", agent="flooded"))
    [alert] = alerts_in(alerts.when(TRIPPED, in_session("s", agent="calm")))
    assert (alert.agent, alert.session, alert.detail) == ("calm", "s", "")


def test_a_flood_of_many_agents_crowds_its_own_subject_alone() -> None:
    alerts = alerting(AlertsSettings(most_of_a_topic=10, most_a_minute=1_000))
    seen = [event for number in range(20) for event in alerts.when(TRIPPED, in_session("s", agent=f"a{number}"))]
    assert {(each.agent, each.detail) for each in alerts_in(seen)[10:]} == {("", "(others)")}
    [alert] = alerts_in(alerts.when(sample("monitor.mode_red_flag", mode="CLARIFY"), Address("calm", "", "")))
    assert (alert.agent, alert.detail) == ("calm", "CLARIFY")
    [end] = alerts_in(alerts.when(sample("monitor.mode_in_range", mode="CLARIFY"), Address("calm", "", "")))
    assert (end.alert, end.status) == (alert.alert, "resolved")


def test_a_group_that_was_never_announced_ends_without_a_word_and_is_accounted_for() -> None:
    alerts = alerting(AlertsSettings(most_a_minute=1, quiet_ms=1_000))
    for agent in ("first", "second", "third"):
        alerts.when(BLOCKED, in_session("s", agent=agent))
    events = pass_time(alerts, MINUTE_MS)
    assert told(events) == [("warning.reflex", "resolved", 1)]
    assert [each.untold for each in events if isinstance(each, AlertsScheduled)] == [2]


def test_one_timer_is_set_for_all_groups_and_an_earlier_one_only_for_what_ends_earlier() -> None:
    alerts = alerting()
    [first] = [event for event in alerts.when(BLOCKED) if isinstance(event, AlertsScheduled)]
    assert (first.wake_after_ms, first.open_groups) == (QUIET_MS, 1)
    assert not any(isinstance(event, AlertsScheduled) for event in alerts.when(TRIPPED))
    [sooner] = [e for e in alerts.when(sample("delegate.failed")) if isinstance(e, AlertsScheduled)]
    assert (sooner.wake_after_ms, sooner.open_groups) == (MINUTE_MS, 3)


def test_a_timer_of_another_owner_means_nothing() -> None:
    alerts = alerting()
    alerts.when(BLOCKED)
    before = encode_state(alerts.state)
    assert alerts.when(sample("clock.fired"), after_ms=HOUR_MS) == []
    assert encode_state(alerts.state) == before


def test_many_groups_that_end_together_are_resolved_a_look_at_a_time() -> None:
    alerts = alerting(AlertsSettings(at_once=4))
    for number in range(10):
        alerts.when(BLOCKED, in_session("s", agent=f"a{number}"))
    looks: list[list[Alert]] = []
    for _ in range(4):
        looks.append(alerts_in(pass_time(alerts, QUIET_MS if not looks else 1_000)))
    assert [len(each) for each in looks] == [4, 4, 2, 0]


def test_a_million_agents_take_no_more_room_than_the_limit() -> None:
    limits = AlertsSettings(most_of_a_topic=50)
    alerts = alerting(limits)
    sizes = set()
    for number in range(3_000):
        alerts.when(TRIPPED, in_session("s", agent=f"a{number}"))
        sizes.add(len(encode_state(alerts.state)) // 1_000)
    assert len(alerts.state.groups) == limits.most_of_a_topic + 1
    assert max(sizes) <= 2 * (len(encode_state(alerts.state)) // 1_000)
    counted = sum(group.count for group in alerts.state.groups.values())
    assert counted == 3_000


def test_one_session_s_end_is_not_the_end_of_the_group_that_stands_for_many() -> None:
    alerts = alerting(AlertsSettings(most_of_a_topic=1))
    for session in ("one", "two", "three"):
        alerts.when(TRIPPED, in_session(session))
    assert told(alerts.when(RECOVERED, in_session("three"))) == []
    [end] = alerts_in(pass_time(alerts, QUIET_MS))
    assert (end.session, end.count, end.resolved_by) == ("", 2, "quiet")


kinds = [
    TRIPPED,
    TERMINATED,
    RECOVERED,
    RESET,
    BLOCKED,
    REJECTED,
    *(sample(f"{name}.failed") for name in ("llm", "act")),
]
happenings = st.lists(
    st.tuples(
        st.sampled_from(kinds),
        st.sampled_from(["ann", "bob"]),
        st.sampled_from(["morning", "evening", "night"]),
        st.sampled_from([0, 1, 20_000, 4 * MINUTE_MS, 16 * MINUTE_MS]),
    ),
    max_size=60,
)
limits = st.builds(
    AlertsSettings,
    most_a_minute=st.sampled_from([1, 2, 60]),
    most_an_agent=st.sampled_from([1, 20]),
    most_of_a_topic=st.sampled_from([1, 2, 10_000]),
    most_of_an_agent=st.sampled_from([1, 20]),
    at_once=st.sampled_from([1, 100]),
)


def lived(chosen: AlertsSettings, what: list[tuple[Event, str, str, int]]) -> tuple[Partition, list[Event], int]:
    """Let things happen, then nothing for two days; return the partition, what it said, and how many called for it."""
    alerts, said, calls = alerting(chosen), [], 0
    for event, agent, session, wait_ms in what:
        said += pass_time(alerts, wait_ms)
        said += alerts.when(event, Address(agent, session, "x"))
        calls += event is not RECOVERED
    return alerts, [*said, *pass_time(alerts, 48 * HOUR_MS)], calls


@given(limits, happenings)
@settings(max_examples=150, deadline=None)
def test_every_announced_outbreak_is_resolved_once_and_last(
    chosen: AlertsSettings, what: list[tuple[Event, str, str, int]]
) -> None:
    _, said, _ = lived(chosen, what)
    outbreaks: dict[tuple[str, int], list[str]] = {}
    for alert in alerts_in(said):
        outbreaks.setdefault((alert.alert, alert.first_seq), []).append(alert.status)
    for statuses in outbreaks.values():
        assert statuses[0] == "firing"
        assert statuses.count("resolved") == 1
        assert statuses[-1] == "resolved"


@given(limits, happenings)
@settings(max_examples=150, deadline=None)
def test_every_event_is_counted_once(chosen: AlertsSettings, what: list[tuple[Event, str, str, int]]) -> None:
    alerts, said, calls = lived(chosen, what)
    resolved = sum(each.count for each in alerts_in(said) if each.status == "resolved")
    untold = sum(each.untold for each in said if isinstance(each, AlertsScheduled))
    assert resolved + untold == calls
    assert encode_state(alerts.state) == encode_state(alerting(chosen).state), "nothing is left of it"


@given(limits, happenings)
@settings(max_examples=100, deadline=None)
def test_no_minute_has_more_than_its_limit(chosen: AlertsSettings, what: list[tuple[Event, str, str, int]]) -> None:
    alerts, _, _ = lived(chosen, what)
    minutes = Counter(
        (each.time_ns // 60_000_000_000, each.event.severity)
        for each in alerts.emitted
        if isinstance(each.event, Alert) and each.event.status == "firing"
    )
    assert all(count <= chosen.most_a_minute for count in minutes.values())


@given(st.builds(AlertsSettings, most_a_minute=st.just(2), most_an_agent=st.sampled_from([1, 2])), happenings)
@settings(max_examples=100, deadline=None)
def test_whatever_stays_open_is_announced_in_the_end(
    chosen: AlertsSettings, what: list[tuple[Event, str, str, int]]
) -> None:
    alerts = alerting(chosen)
    for event, agent, session, wait_ms in what:
        pass_time(alerts, wait_ms)
        alerts.when(event, Address(agent, session, "x"))
    # Long enough for all of them at two a minute, and too short for any session's to lapse.
    pass_time(alerts, 60 * MINUTE_MS)
    assert all(group.told and not group.owed for group in alerts.state.groups.values())


@given(happenings)
@settings(max_examples=60, deadline=None)
def test_settings_of_a_later_release_do_not_stop_the_fold(what: list[tuple[Event, str, str, int]]) -> None:
    alerts = alerting()
    before = alerts.state
    alerts.fold(alerts.own(sample("alert.configured", settings={"quiet_ms": "soon"})))
    assert alerts.state == before
    for event, agent, session, wait_ms in what:
        alerts.when(event, Address(agent, session, "x"), after_ms=wait_ms)
    assert all(isinstance(msgspec.to_builtins(each.event), dict) for each in alerts.emitted)
