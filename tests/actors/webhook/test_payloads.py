"""What Slack-style webhooks and Alertmanager are sent."""

import re
from datetime import datetime

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from actors.webhook.payloads import alertmanager_alert, payload, slack_message
from actors.webhook.settings import Receiver
from schemas.vocabulary.alerts import Alert
from schemas.wording.alert_summary import alert_summary
from tests.actors.strategies import events_of
from tests.actors.webhook.alerts import alert
from tests.each import each

STORED_NS = 1_761_482_096_500_000_000
HOUR_MS = 3_600_000
any_alert = st.sampled_from(["critical.breaker", "warning.reflex", "info.operator"]).flatmap(
    lambda name: events_of(type(alert(name)))
)


def test_a_slack_message_says_what_and_whose_and_how_often() -> None:
    told = alert(event="forged_id.breaker.tripped", agent="felix", session="morning", count=4, suppressed=2)
    message = slack_message(told, "")
    assert message["text"] == f"Critical: breaker.tripped. {alert_summary(told)}"
    [attachment] = message["attachments"]
    section, context = attachment["blocks"]
    assert section["text"]["text"] == f"*Critical: breaker.tripped*\n{alert_summary(told)}"
    [facts] = context["elements"]
    for fact in (
        "agent* `felix`",
        "session* `morning`",
        "count* `4`",
        "held back* `2`",
        f"alert* `{told.alert} firing 4`",
    ):
        assert fact in facts["text"]


def test_the_body_of_an_alert_is_sent_with_what_it_means_in_words() -> None:
    told = alert(event="forged_id.breaker.tripped", figures={"violation": "role_confusion", "trust": "0.15"})
    sent = msgspec.json.decode(payload(told, Receiver(style="json"), STORED_NS, HOUR_MS))
    words = "A violation that nothing compensates: the session's processing is off. violation=role_confusion trust=0.15"
    assert sent == {**msgspec.to_builtins(told), "summary": words}


def test_an_alert_of_a_subject_that_this_release_does_not_know_is_readable_still() -> None:
    told = alert(event="forged_id.waiter.gone", figures={"reason": "asleep"})
    assert slack_message(told, "")["text"] == "Critical: waiter.gone. forged_id.waiter.gone. reason=asleep"


def test_an_end_is_green_and_says_what_ended_it() -> None:
    message = slack_message(alert(status="resolved", resolved_by="forged_id.breaker.reset"), "")
    assert message["text"].startswith("Resolved: ")
    [attachment] = message["attachments"]
    assert attachment["color"] == "#2eb67d"
    assert "*ended by* `forged_id.breaker.reset`" in attachment["blocks"][1]["elements"][0]["text"]


def test_names_cannot_write_slack_markup() -> None:
    message = msgspec.json.encode(slack_message(alert(agent="<!channel> & <http://evil|x>"), "")).decode()
    assert "<!channel>" not in message
    assert "&lt;!channel&gt; &amp; &lt;http://evil|x&gt;" in message


@each(
    ("name", "shown"),
    [
        ("*bold* _slanted_ ~struck~ @channel", "`*bold* _slanted_ ~struck~ @channel`"),
        ("` @here <!here> `", "`? @here &lt;!here&gt; ?`"),
        ("one\ntwo\u202e\x00", "`one?two??`"),
    ],
)
def test_names_are_shown_as_code_that_they_cannot_leave(name: str, shown: str) -> None:
    message = slack_message(alert(agent=name, session=name), "")
    [facts] = message["attachments"][0]["blocks"][1]["elements"]
    assert f"*agent* {shown} · *session* {shown} · " in facts["text"]
    assert facts["verbatim"] is True
    assert message["mrkdwn"] is False


def test_long_names_are_cut_to_what_slack_takes() -> None:
    message = slack_message(alert(agent="&" * 10_000, session="<" * 10_000, exchange=">" * 10_000), "")
    [facts] = message["attachments"][0]["blocks"][1]["elements"]
    assert len(facts["text"]) <= 3_000
    assert f"*agent* `{'&amp;' * 120}…` · " in facts["text"]


def test_a_link_leads_to_the_dashboard() -> None:
    blocks = slack_message(alert(), "https://grafana.example/d/1")["attachments"][0]["blocks"]
    assert blocks[0]["text"]["text"].startswith("*<https://grafana.example/d/1|Critical: breaker.failed>*")
    assert alertmanager_alert(alert(), "https://grafana.example/d/1", STORED_NS, HOUR_MS)["generatorURL"]


def test_alertmanager_is_told_when_it_began_and_that_it_lasts() -> None:
    sent = alertmanager_alert(alert(), "", STORED_NS, HOUR_MS)
    assert sent["startsAt"] == "2025-10-26T12:34:56.000Z"
    assert sent["endsAt"] == "2025-10-26T13:34:56.500Z"
    assert sent["labels"]["alertname"] == "breaker.failed"
    assert (sent["labels"]["severity"], sent["labels"]["detail"]) == ("critical", "decider_raised")
    assert "agent" not in sent["labels"], "an empty label is no label"
    assert sent["annotations"]["count"] == "1"


def test_alertmanager_gets_the_end_under_the_labels_of_the_beginning() -> None:
    firing = alertmanager_alert(alert(), "", STORED_NS, HOUR_MS)
    resolved = alertmanager_alert(alert(status="resolved", count=9, resolved_by="quiet"), "", STORED_NS, HOUR_MS)
    assert firing["labels"] == resolved["labels"]
    assert resolved["endsAt"] == "2025-10-26T12:34:56.500Z"


@given(st.text(), st.text(max_size=80))
def test_alertmanager_s_labels_are_named_as_it_wants_and_hold_the_names_as_they_are(agent: str, session: str) -> None:
    sent = payload(alert(agent=agent, session=session), Receiver(style="alertmanager"), STORED_NS, HOUR_MS)
    labels = msgspec.json.decode(sent)[0]["labels"]
    assert all(re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_]*", name) for name in labels)
    assert (labels.get("agent", ""), labels.get("session", "")) == (agent, session)


def test_the_api_takes_an_array_of_alerts() -> None:
    sent = msgspec.json.decode(payload(alert(), Receiver(style="alertmanager"), STORED_NS, HOUR_MS))
    assert [set(each) for each in sent] == [{"labels", "annotations", "startsAt", "endsAt"}]


def test_any_other_receiver_gets_the_body_that_is_on_the_broker() -> None:
    told = alert()
    assert msgspec.json.decode(payload(told, Receiver(style="json"), STORED_NS, HOUR_MS), type=type(told)) == told


@given(any_alert)
def test_any_alert_can_be_sent_and_names_itself_its_status_and_its_count(told: Alert) -> None:
    sent = slack_message(told, "")
    facts = sent["attachments"][0]["blocks"][1]["elements"][0]["text"]
    assert f"{told.status} {told.count}" in facts
    managed = alertmanager_alert(told, "", STORED_NS, HOUR_MS)
    assert all(value for value in managed["labels"].values())
    assert datetime.fromisoformat(managed["endsAt"])
    assert msgspec.json.encode([sent, managed])
