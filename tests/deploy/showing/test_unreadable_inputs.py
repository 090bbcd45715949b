"""An input that nobody can read: one alert of each severity, not one an actor, and a plain word on what it is."""

import io
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from rich.console import Console

from actors.registry import ACTORS
from deploy.cli.rendering.alerts import alert_of
from deploy.cli.rendering.event_rows import entry_of, group_unreadable, line_of
from deploy.cli.rendering.why.tree import plain_sentence, render
from events.log import Stored
from events.replay.explain import explain
from schemas.envelope import decode_headers, exchange_in
from schemas.vocabulary.gateway import InputReceived
from tests.actors.scenario import Address
from tests.events.recording import Recording


@pytest.fixture(scope="module")
def log() -> Sequence[Stored]:
    recording = Recording(ACTORS.values())
    recording.configure()
    for number in range(2):
        recording.send(InputReceived(text=""), Address("ann", "noon", f"exchange-{number}"), body=b'{"topic":')
        recording.settle()
    return recording.log


def test_two_such_inputs_are_one_alert_of_each_severity(log: Sequence[Stored]) -> None:
    failed = [each for each in log if each.subject.endswith(".failed")]
    assert len(failed) > 20, "every actor on the path has failed, and many beside it"
    alerts = [msgspec.json.decode(each.data) for each in log if ".alert.critical." in each.subject]
    assert len({each["alert"] for each in alerts}) == 1
    assert len({each["alert"] for each in log_alerts(log)}) <= 2
    assert alerts[0]["figures"]["failed_topic"] == "forged_id.input.received"
    told = [alert for each in log if (alert := alert_of(each)) is not None and alert.severity == "critical"]
    assert "cannot be read" in told[0].summary
    assert alerts[0]["detail"] == "undecodable forged_id.input.received"


def log_alerts(log: Sequence[Stored]) -> list[dict[str, Any]]:
    found = [each for each in log if ".alert.critical." in each.subject or ".alert.warning." in each.subject]
    return [msgspec.json.decode(each.data) for each in found]


def test_why_says_that_it_was_never_read_and_what_to_do(log: Sequence[Stored]) -> None:
    found = explain([each for each in log if decode_headers(each.headers).exchange == "exchange-0"])
    assert found is not None
    sentence = plain_sentence(found)
    assert sentence.startswith("Never begun: the input at sequence ")
    assert "send it again" in sentence
    console = Console(file=io.StringIO(), width=200)
    console.print(render(found))
    assert isinstance(console.file, io.StringIO)
    assert "is open" not in console.file.getvalue()


def test_why_says_of_an_input_of_a_later_release_that_one_wrote_it() -> None:
    recording = Recording(ACTORS.values())
    recording.configure()
    recording.send(InputReceived(text=""), Address("ann", "noon", "exchange"), **{"ce-dataversion": "2"})
    recording.settle()
    found = explain([each for each in recording.log if decode_headers(each.headers).exchange == "exchange"])
    assert found is not None
    sentence = plain_sentence(found)
    assert sentence.startswith("Never begun: the input at sequence ")
    assert "A later release wrote it" in sentence
    assert "docs/inputs.md" not in sentence


def test_why_finds_the_failures_of_an_unreadable_input_that_names_no_exchange() -> None:
    recording = Recording(ACTORS.values())
    recording.configure()
    sent = recording.send(InputReceived(text=""), Address("ann", "noon", ""), body=b'{"topic":')
    recording.settle()
    found = explain([each for each in recording.log if exchange_in(each.headers) == sent.headers["ce-id"]])
    assert found is not None
    assert plain_sentence(found).startswith(f"Never begun: the input at sequence {sent.seq} ")


def test_a_tail_for_people_has_one_line_for_each_such_message(log: Sequence[Stored]) -> None:
    entries = [entry_of(each, words=False) for each in log]
    failed = [entry for entry in entries if entry.topic.endswith(".failed")]
    lines = [line_of(*row).plain for row in group_unreadable(entries) if row[0].topic.endswith(".failed")]
    assert len(lines) == 2
    names = {entry.topic.split(".")[1] for entry in failed}
    assert all(name in lines[0] for name in names)
    assert [row[0] for row in group_unreadable(entries) if row[0] not in failed] == [
        one for one in entries if one not in failed
    ]


def test_an_exchange_that_is_under_way_is_still_open() -> None:
    recording = Recording(ACTORS.values())
    recording.configure()
    recording.send(InputReceived(text="Hello!"), Address("ann", "noon", "exchange-0"))
    found = explain([each for each in recording.log if decode_headers(each.headers).exchange == "exchange-0"])
    assert found is not None
    assert plain_sentence(found) == "Open: it has no end yet."


def test_why_does_not_call_an_exchange_open_whose_end_a_later_release_wrote() -> None:
    recording = Recording(ACTORS.values())
    recording.configure()
    recording.send(InputReceived(text=""), Address("ann", "noon", "exchange"))
    recording.settle()
    own = [each for each in recording.log if decode_headers(each.headers).exchange == "exchange"]
    [end] = [each for each in own if each.subject.endswith("response.emitted")]
    later = msgspec.structs.replace(end, headers=end.headers | {"ce-dataversion": "2"})
    found = explain([later if each is end else each for each in own])
    assert found is not None
    console = Console(file=io.StringIO(), width=200)
    console.print(render(found))
    assert isinstance(console.file, io.StringIO)
    told = console.file.getvalue()
    assert plain_sentence(found).startswith(f"Not known: this release cannot read sequence {end.seq} of it")
    assert "no end yet" not in told
    assert "open" not in told.splitlines()[0]
