"""The client's types are those of the server: a field that only one of them has is found here, not by a user."""

import dataclasses
from typing import get_args

import msgspec
import pytest

import neuraxis
from actors.gateway.http.guard.bodies import GuardInput, GuardVerdict
from actors.gateway.http.openai.answers import REFUSALS, ChatCompletion, Decision
from deploy.cli.rendering.event_rows import Entry
from events.ledger import Page
from events.ledger.exchange_list import ExchangeRow
from neuraxis import calls, events, models
from schemas.catalogue import CATALOGUE
from schemas.envelope import exchange_in
from schemas.event import ROOT, encode_event, topic_of
from schemas.export.headers import sample_headers
from schemas.subjects import topic_filter
from schemas.vocabulary.alerts import Alert
from schemas.vocabulary.gateway import InputReceived, Role
from schemas.vocabulary.reflex import ReflexPassed
from tests.each import each


@each(
    ("ours", "theirs"),
    [
        (neuraxis.Verdict, GuardVerdict),
        (neuraxis.Decision, Decision),
        (neuraxis.Exchange, ExchangeRow),
        (neuraxis.Page, Page),
        (neuraxis.Event, Entry),
        (neuraxis.Alert, Alert),
    ],
)
def test_a_type_has_the_fields_that_the_server_sends(ours: type, theirs: type[msgspec.Struct]) -> None:
    assert {each.name for each in dataclasses.fields(ours)} == set(theirs.__struct_fields__)


def test_feedback_is_what_the_gateway_takes_and_answers() -> None:
    theirs = pytest.importorskip("actors.gateway.http.feedback.endpoints", reason="this gateway takes no feedback")
    assert {each.name for each in dataclasses.fields(neuraxis.Feedback)} == set(theirs.FeedbackTaken.__struct_fields__)
    sent = calls.feedback("e1", 0.5, False, "late").body
    assert sent is not None
    assert set(sent) == set(theirs.Feedback.__struct_fields__)


def test_what_is_always_there_for_the_client_has_no_default_at_the_server() -> None:
    optional = {each.name for each in msgspec.structs.fields(Alert) if not each.required}
    assert {each.name for each in dataclasses.fields(neuraxis.Alert) if not _is_required(each)} == optional


def test_an_input_has_fields_that_the_server_takes() -> None:
    whole = neuraxis.Input(
        text="a", layers=[neuraxis.Layer(role="user", content="b")], documents=["c"], tool_results=["d"],
        context="e", session="f", agent="g",
    )  # fmt: skip
    body = whole.body()
    assert set(body) == set(GuardInput.__struct_fields__)
    assert msgspec.to_builtins(msgspec.convert(body, GuardInput))["context"] == "e"


def test_words_that_are_listed_are_the_servers() -> None:
    assert set(get_args(models.Role)) == set(get_args(Role))
    assert set(REFUSALS) == models.REFUSALS
    assert "neuraxis" in ChatCompletion.__struct_fields__
    assert (events.ROOT, events.stored_filter("forged_id.alert.*.*")) == (ROOT, topic_filter("forged_id.alert.*.*"))
    assert events.stored_filter("reflex.blocked") == topic_filter("forged_id.reflex.blocked")
    assert events.stored_filter(">") == topic_filter("forged_id.>")


def test_every_event_of_the_catalogue_is_read_as_the_broker_delivers_it() -> None:
    for topic, entry in CATALOGUE.items():
        event = events.event_of_message(topic, sample_headers(entry), encode_event(entry.sample), 7)
        assert (event.topic, event.seq) == (topic, 7)
        assert {"topic": topic, **event.data} == msgspec.json.decode(encode_event(entry.sample))
        assert (event.alert is not None) == isinstance(entry.sample, Alert)
        if event.alert is not None:
            assert dataclasses.asdict(event.alert) == event.data
            assert entry.version == events.ALERT_VERSION, "the client's Alert is that of another version"
            other = dataclasses.replace(event, version=entry.version + 1)
            assert other.alert is None, "fields of another version would be taken for these"


@each("body", [b"", b"{", b"[1]", b"\xff", b"null"])
def test_an_event_without_a_readable_body_is_told_as_that_and_those_behind_it_are_read(body: bytes) -> None:
    event = events.event_of_message("log.02.00.input.received", {"ce-id": "one"}, body, 7)
    assert (event.seq, event.id, event.data) == (7, "one", {})
    assert event.unreadable
    alert = events.event_of_message("forged_id.alert.critical.swarm", {"ce-id": "one"}, body)
    assert (alert.alert, bool(alert.unreadable)) == (None, True)


def test_an_input_that_names_no_exchange_is_told_under_the_one_that_the_server_gives_it() -> None:
    for topic, headers in ((topic_of(InputReceived), {}), (topic_of(ReflexPassed), {}), ("", {"ce-exchange": "given"})):
        headers = {"ce-id": "own%20id", "ce-type": topic, **headers}
        assert events.event_of_message(topic, headers, b"{}").exchange == exchange_in(headers)


def _is_required(each: "dataclasses.Field[object]") -> bool:
    return each.default is dataclasses.MISSING and each.default_factory is dataclasses.MISSING
