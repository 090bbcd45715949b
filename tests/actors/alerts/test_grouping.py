"""What makes one alert of many events, and what it says."""

import msgspec
import pytest

from actors.alerts.grouping import ENDED, GROUPINGS, figures, key_of
from schemas.actor import Message, Scope
from schemas.catalogue import ALERTING, ALERTS, CATALOGUE
from schemas.entry import Entry, Severity
from schemas.errors import UNREADABLE
from schemas.event import Failed, Personal, topic_of
from schemas.vocabulary.alerts import Alert, alert_entries
from schemas.wording.alert_summary import alert_summary
from tests.actors.alerts.builders import BLOCKED, RESET, TRIPPED, alerting, alerts_in, in_session, sample, told
from tests.actors.scenario import START_NS
from tests.each import each

every_topic = each("topic", ALERTING)


def test_each_severity_of_an_owner_has_its_subject() -> None:
    called_for = {(entry.severity, entry.owner) for entry in CATALOGUE.values() if entry.severity is not None}
    assert set(ALERTS) == {pair for pair in called_for if pair[1] != "alerts"}
    assert {topic_of(kind) for kind in ALERTS.values()} <= CATALOGUE.keys()


def test_a_new_owner_s_severity_brings_its_subject_and_nothing_else_does() -> None:
    class WaiterFailed(Failed, frozen=True, kw_only=True, tag="forged_id.waiter.failed"):
        """A message that an actor of somebody else's could not decide."""

    sample = WaiterFailed(reason="decider_raised", error="ValueError", failed_seq=1, failed_topic="forged_id.x.y")
    quiet = Entry(owner="waiter", scope=Scope.SESSION, meaning="It failed.", sample=sample)
    loud = msgspec.structs.replace(quiet, severity=Severity.WARNING)
    assert [entry.topic for entry in alert_entries([quiet, loud, loud])] == ["forged_id.alert.warning.waiter"]
    assert alert_entries([quiet]) == ()


def test_alerts_are_published_under_their_severity_and_source() -> None:
    assert {topic_of(kind) for kind in ALERTS.values()} >= {
        "forged_id.alert.critical.breaker",
        "forged_id.alert.warning.reflex",
        "forged_id.alert.info.operator",
    }


@every_topic
def test_an_alert_holds_what_the_grouping_tells_by_the_names_of_the_fields(topic: str) -> None:
    event = CATALOGUE[topic].sample
    if isinstance(event, Failed):
        # One that says that nobody can read a message is told of otherwise, whoever says it.
        event = msgspec.structs.replace(event, reason="decider_raised")
    held = figures(event)
    assert held.keys() <= {name.rpartition(".")[2] for name in GROUPINGS[topic].copied_fields}
    assert "" not in held.values()


@every_topic
def test_no_word_of_the_catalogue_is_on_record(topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reworded meaning changes no alert: who shows one puts the words to it."""
    entry = CATALOGUE[topic]
    message = Message(entry.sample, 1, "id", START_NS, "agent", "session")
    before = alerts_in(alerting().when(entry.sample))
    monkeypatch.setitem(CATALOGUE, topic, msgspec.structs.replace(entry, meaning="Something else entirely."))
    assert alerts_in(alerting().when(message.event)) == before
    assert all(entry.meaning not in msgspec.json.encode(alert).decode() for alert in before)
    assert all(alert_summary(alert).startswith("Something else entirely.") for alert in _readable(before))


def _readable(alerts: list[Alert]) -> list[Alert]:
    return [alert for alert in alerts if alert.event in CATALOGUE and alert.figures.get("reason") not in UNREADABLE]


@every_topic
def test_no_alert_tells_or_is_grouped_by_people_s_words(topic: str) -> None:
    hints = CATALOGUE[topic].event.__annotations__
    shown = {*GROUPINGS[topic].copied_fields, *GROUPINGS[topic].fields}
    assert [name for name in shown if hints.get(name) is Personal] == []
    assert shown.isdisjoint({"why", "by", "override_reason", "overridden_by", "override_by"})


@every_topic
def test_what_ends_a_condition_names_the_same_group(topic: str) -> None:
    for end in ALERTING[topic].ended_by:
        message = Message(CATALOGUE[topic_of(end)].sample, 1, "id", 0, "agent", "session")
        assert topic in ENDED[topic_of(end)]
        assert key_of(topic, message).topic == topic


def test_a_session_s_breaker_is_an_alert_of_its_own() -> None:
    alerts = alerting()
    for session in ("morning", "evening"):
        [alert] = alerts_in(alerts.when(TRIPPED, in_session(session)))
        assert (alert.agent, alert.session, alert.exchange, alert.count) == ("agent", session, "exchange", 1)


def test_blocks_of_many_sessions_are_one_alert_of_their_agent() -> None:
    alerts = alerting()
    [first] = alerts_in(alerts.when(BLOCKED, in_session("one")))
    [second] = alerts_in(alerts.when(BLOCKED, in_session("two")))
    [other] = alerts_in(alerts.when(BLOCKED, in_session("one", agent="another")))
    assert (first.alert, first.session, first.count) == (second.alert, "", 1)
    assert second.count == 2
    assert (other.agent, other.count) == ("another", 1)
    assert other.alert != first.alert


def test_a_failure_is_grouped_by_what_failed_and_why() -> None:
    alerts = alerting()
    overdue = sample("llm.failed", reason="endpoint_overdue")
    [first] = alerts_in(alerts.when(sample("llm.failed"), in_session("s", agent="ann")))
    [second] = alerts_in(alerts.when(overdue, in_session("s", agent="ann")))
    [third] = alerts_in(alerts.when(overdue, in_session("s", agent="bob")))
    assert (first.detail, second.detail, third.count) == ("endpoint_unreachable", "endpoint_overdue", 2)
    assert (second.agent, second.alert) == ("", third.alert)


def test_each_mode_of_an_agent_is_watched_by_itself() -> None:
    alerts = alerting()
    [respond] = alerts_in(alerts.when(sample("monitor.mode_red_flag", mode="RESPOND")))
    [clarify] = alerts_in(alerts.when(sample("monitor.mode_red_flag", mode="CLARIFY")))
    assert respond.alert != clarify.alert
    ends = alerts_in(alerts.when(sample("monitor.mode_in_range", mode="CLARIFY")))
    assert [(each.alert, each.status) for each in ends] == [(clarify.alert, "resolved")]


def test_an_alert_holds_numbers_and_codes_and_when_it_was() -> None:
    [alert] = alerts_in(alerting().when(TRIPPED))
    assert alert.figures == {"violation": "role_confusion", "layer": "text", "trust": "0.15"}
    assert alert_summary(alert) == (
        "A violation that nothing compensates: the session's processing is off. "
        "violation=role_confusion layer=text trust=0.15"
    )
    assert (alert.severity, alert.source, alert.event) == ("critical", "breaker", "forged_id.breaker.tripped")
    assert (alert.since_ns, alert.last_ns) == (START_NS, START_NS)
    assert (alert.first_seq, alert.cause_seq) == (1, 1)


def test_what_an_operator_writes_stays_out() -> None:
    [alert] = alerts_in(alerting().when(sample("breaker.reset", by="ann", why="the customer swore")))
    assert alert.figures == {}
    assert alert_summary(alert) == "An operator reset a session."


def test_every_failure_of_another_actor_leads_to_an_alert() -> None:
    failures = [entry for entry in CATALOGUE.values() if issubclass(entry.event, Failed) and entry.owner != "alerts"]
    for entry in failures:
        [(subject, status, count)] = told(alerting().when(entry.sample))
        assert (subject, status, count) == (f"{entry.severity}.{entry.owner}", "firing", 1)


def test_a_reset_ends_the_alert_of_its_session_and_is_one_itself() -> None:
    alerts = alerting()
    alerts.when(TRIPPED)
    assert told(alerts.when(RESET)) == [("critical.breaker", "resolved", 1), ("info.breaker", "firing", 1)]


@each("end", ["calmed", "tripped", "terminated", "reset"])
def test_the_warning_before_a_session_s_end_is_resolved_once_it_is_over(end: str) -> None:
    alerts = alerting()
    assert told(alerts.when(sample("breaker.warned"))) == [("warning.breaker", "firing", 1)]
    assert ("warning.breaker", "resolved", 1) in told(alerts.when(sample(f"breaker.{end}")))
