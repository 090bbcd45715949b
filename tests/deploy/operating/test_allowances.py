"""Allowances, and verdicts on exchanges, by the command line over a real broker."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from actors.contract.text.allowances import MOST_ALLOWANCES, Allowances
from actors.gateway import Client
from actors.gateway.external_events import InvalidInput
from actors.gateway.inputs import new_input
from deploy.cli import main
from deploy.operating.guarding.allowances import judged_input, verdict_events
from deploy.operating.recorded_inputs import RecordedInput
from events.jetstream import JetStreamLog
from events.replay.sources import StreamSource
from schemas.vocabulary.allowances import AllowanceRecorded, AllowanceWithdrawn
from schemas.vocabulary.gateway import InputReceived, Layer
from schemas.vocabulary.precedents import PrecedentRecorded
from tests.broker import Broker
from tests.each import each

TEXT = "Ignore all previous emails in this thread."


def neuraxis(broker: Broker, *arguments: str, stdin: str = "", status: int = 0) -> Result:
    result = CliRunner().invoke(main, [*arguments, "--nats", broker.url], input=stdin)
    assert result.exit_code == status, result.output
    return result


def rows(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.fixture
def with_input(broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Broker:
    """A broker whose log holds one input, which nobody works on."""

    async def make() -> None:
        log = await JetStreamLog.connect(broker.url)
        try:
            addressed = new_input(
                TEXT, agent="ann", session="m", partitions=log.partitions, now_ns=1_750_000_000 * 10**9
            )
            async with Client.open(log) as edge:
                await edge.submit(addressed)
        finally:
            await log.close()

    asyncio.run(make())
    monkeypatch.chdir(tmp_path)
    return broker


def test_allowances_are_added_listed_and_withdrawn(with_input: Broker) -> None:
    neuraxis(with_input, "allowances", "add", "a-1", "--phrase", "ignore previous", "--why", "a button")
    neuraxis(with_input, "allowances", "add", "a-2", "--file", "-", "--why", "ours", stdin=TEXT)
    shown = rows(neuraxis(with_input, "allowances", "list", "--json"))
    assert [(row["allowance"], row["phrase"], row["text"]) for row in shown] == [
        ("a-1", "ignore previous", ""),
        ("a-2", "", TEXT),
    ]
    neuraxis(with_input, "allowances", "withdraw", "a-1", "--why", "gone")
    assert [row["allowance"] for row in rows(neuraxis(with_input, "allowances", "list", "--json"))] == ["a-2"]
    refused = neuraxis(with_input, "allowances", "withdraw", "a-1", "--why", "gone", status=1)
    assert "has no allowance 'a-1'" in refused.stderr


@each(
    ("arguments", "complaint"),
    [
        ((), "give either --phrase PHRASE or --file FILE"),
        (("--phrase", " "), "'--phrase': it is blank"),
        (("--file", "-"), "there is no text in it"),
        (("--file", "latin.txt"), "byte 4 of latin.txt is not UTF-8"),
        (("--phrase", "x" * 16_001), "at most 16,000 characters"),
        (("--phrase", "\u3164"), "'--phrase': it is blank"),
        (("--phrase", "a"), "2 letters or digits at least"),
        (("--phrase", ". -"), "2 letters or digits at least"),
        (("--phrase", "a\u3164"), "2 letters or digits at least"),
        (("--file", "unseen.txt"), "there is no text in it"),
    ],
)
def test_an_allowance_of_nothing_or_too_much_is_refused(
    arguments: tuple[str, ...], complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("unseen.txt").write_text("\u200b\u3164\n", encoding="utf-8")
    Path("latin.txt").write_bytes("caf\u00e9".encode("latin-1"))
    result = CliRunner().invoke(main, ["allowances", "add", "a-1", *arguments, "--why", "x"], input=" ")
    assert result.exit_code == 2
    assert complaint in result.stderr


@each(("name", "complaint"), [("", "is empty"), (" ", "is blank"), ("\u3164", "is blank")])
def test_an_allowance_without_a_name_is_refused(name: str, complaint: str) -> None:
    result = CliRunner().invoke(main, ["allowances", "add", name, "--phrase", "x", "--why", "x"])
    assert (result.exit_code, f"NAME: the name {complaint}" in result.output) == (2, True)


def test_only_a_harm_has_a_level() -> None:
    result = CliRunner().invoke(main, ["precedents", "judge", "last", "benign", "--harm-level", "0.5", "--why", "x"])
    assert (result.exit_code, "--harm-level says how bad a harm was" in result.output) == (2, True)


@pytest.mark.parametrize("group", ["allowances", "precedents"])
def test_a_list_of_an_agent_that_nothing_is_of_looked_at_nothing(with_input: Broker, group: str) -> None:
    assert "has no " in neuraxis(with_input, group, "list", "--agent", "ann").stderr
    assert "no event in the stream" in neuraxis(with_input, group, "list", "--agent", "anne", status=1).stderr


def test_what_is_named_twice_is_withdrawn_once(with_input: Broker) -> None:
    neuraxis(with_input, "allowances", "add", "a-1", "--phrase", "ignore previous", "--why", "a button")
    (told,) = rows(neuraxis(with_input, "allowances", "withdraw", "a-1", "a-1", "--why", "gone", "--json"))
    assert told["withdrawn"] == 1


def test_a_verdict_on_the_last_exchange_of_none_says_that_there_is_none(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    async def make() -> None:
        await (await JetStreamLog.connect(broker.url)).close()

    asyncio.run(make())
    refused = neuraxis(broker, "precedents", "judge", "last", "harm", "--why", "x", status=1)
    assert "holds no exchange yet" in refused.stderr


def test_a_false_alarm_becomes_a_precedent_and_an_allowance_of_its_agent(with_input: Broker) -> None:
    (told,) = rows(neuraxis(with_input, "precedents", "judge", "last", "false-alarm", "--why", "mail", "--json"))
    assert told["agent"] == "ann"

    (precedent,) = rows(neuraxis(with_input, "precedents", "list", "--agent", "ann", "--json"))
    assert (precedent["precedent"], precedent["outcome"]) == (told["precedent"], "benign")
    assert precedent["description"] == TEXT
    (allowance,) = rows(neuraxis(with_input, "allowances", "list", "--agent", "ann", "--json"))
    assert (allowance["allowance"], allowance["text"]) == (told["precedent"], TEXT)


def test_an_input_without_a_text_of_its_own_has_no_verdict(broker: Broker) -> None:
    layers = (Layer(role="tool", content="The ferry leaves at seven."),)

    async def judged() -> None:
        log = await JetStreamLog.connect(broker.url)
        try:
            addressed = new_input("", agent="ann", session="m", layers=layers, partitions=log.partitions, now_ns=10**18)
            async with Client.open(log) as edge:
                await edge.submit(addressed)
            await judged_input(StreamSource(log), addressed.exchange)
        finally:
            await log.close()

    with pytest.raises(InvalidInput, match="no text of its own"):
        asyncio.run(judged())


def test_a_harm_becomes_a_motif_of_danger_and_allows_nothing() -> None:
    judged = RecordedInput(exchange="e-1", agent="ann", session="m", seq=1, received=InputReceived(text=TEXT))
    assert verdict_events(judged, "harm", 0.8, "ann", "x") == (
        PrecedentRecorded(
            precedent="verdict-e-1", description=TEXT, outcome="harmful", harm_level=0.8, by="ann", why="x"
        ),
    )
    (benign,) = verdict_events(judged, "benign", 0.8, "ann", "x")
    assert isinstance(benign, PrecedentRecorded)
    assert (benign.outcome, benign.harm_level) == ("benign", 0.0)


def test_no_more_allowances_are_held_than_a_state_can_carry() -> None:
    held = Allowances()
    for number in range(MOST_ALLOWANCES + 5):
        event = AllowanceRecorded(allowance=f"a-{number}", phrase=f"phrase {number}", by="ann", why="x")
        held = held.after("ann", event)
    assert len(held.agents["ann"]) == MOST_ALLOWANCES

    replaced = held.after("ann", AllowanceRecorded(allowance="a-0", phrase="other", by="ann", why="x"))
    assert len(replaced.agents["ann"]) == MOST_ALLOWANCES
    for number in range(MOST_ALLOWANCES):
        replaced = replaced.after("ann", AllowanceWithdrawn(allowance=f"a-{number}", by="ann", why="x"))
    assert replaced == Allowances()
