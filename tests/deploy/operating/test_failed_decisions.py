"""What failed is listed, and its inputs are sent again: by the command line over a real broker."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path
from threading import Thread
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result

from actors.gateway.external_events import build_event
from actors.gateway.inputs import new_input
from actors.registry import ACTORS
from deploy.cli import main
from deploy.operating.failed_decisions import failed_decisions, inputs_to_redrive
from events.bundles import unpack
from events.decoding import Recorded, decode
from events.jetstream import JetStreamLog
from events.log import Append, Stored, Tail
from events.replay.sources import LedgerSource, StreamSource
from schemas.event import Event, topic_of
from schemas.identity import event_id
from schemas.subjects import topic_filter
from schemas.vocabulary.gateway import InputReceived, Layer
from schemas.vocabulary.memory import MemoryFailed
from schemas.vocabulary.reflex import ReflexFailed
from schemas.vocabulary.regulator import RegulatorFailed
from schemas.vocabulary.responder import Action, ResponseEmitted
from tests.actors.scenario import Address
from tests.broker import Broker
from tests.events.ledger.messages import write
from tests.events.recording import Recording
from tests.fixtures import FOLDER

NOW_NS = 1_750_000_000 * 10**9
LAYERS = (Layer(role="document", content="The ferry leaves at seven."),)
FAILURE: dict[str, Any] = {"reason": "decider_raised", "error": "ValueError", "failed_seq": 1, "failed_topic": "x"}


def end(action: Action) -> ResponseEmitted:
    return ResponseEmitted(
        stage="DELIBERATIVE", action=action, reason="r", mode=None, first_mode=None, response="Seven.", backend="c"
    )


async def store(log: JetStreamLog, event: Event, exchange: str = "") -> None:
    made = build_event(
        event,
        id=event_id(exchange, topic_of(event), 0),
        partitions=log.partitions,
        now_ns=NOW_NS,
        agent="ann",
        session="talk" if exchange else "",
        exchange=exchange,
    )
    await log.append([Append([made.record])])


async def store_input(log: JetStreamLog, exchange: str, purpose: Any = "answer") -> None:
    made = new_input(
        "When does it leave?",
        agent="ann",
        session="talk",
        layers=LAYERS,
        situation="travel",
        exchange=exchange,
        purpose=purpose,
        partitions=log.partitions,
        now_ns=NOW_NS,
    )
    await log.append([Append([made.record])])


class CountingSource(LedgerSource):
    """A ledger that notes which subjects are read."""

    def __init__(self, file: Path) -> None:
        super().__init__(file)
        self.read: list[str] = []

    def as_stored(self, filters: Sequence[str], after: int, upto: int) -> AsyncIterator[Sequence[Stored]]:
        self.read.extend(filters)
        return super().as_stored(filters, after, upto)


@pytest.mark.parametrize(("action", "is_read"), [("EXECUTED", False), ("FAILED", True)])
def test_the_inputs_of_a_log_are_read_only_if_something_failed(tmp_path: Path, action: Action, is_read: bool) -> None:
    recording = Recording(ACTORS.values())
    recording.configure()
    recording.send(InputReceived(text="Hello!"), Address("ann", "noon", "e-1"))
    recording.send(end(action), Address("ann", "noon", "e-1"))
    write(tmp_path / "ledger.db", recording.log, partitions=recording.partitions)
    source = CountingSource(tmp_path / "ledger.db")
    try:
        found = asyncio.run(failed_decisions(source))
    finally:
        source.close()
    assert bool(found) is is_read
    assert (topic_filter(topic_of(InputReceived)) in source.read) is is_read


def test_an_input_of_a_later_release_that_sent_one_again_counts(tmp_path: Path) -> None:
    recording = Recording(ACTORS.values())
    recording.configure()
    recording.send(InputReceived(text="Hello!"), Address("ann", "noon", "e-1"))
    recording.send(MemoryFailed(**FAILURE), Address("ann", "noon", "e-1"))
    recording.send(end("FAILED"), Address("ann", "noon", "e-1"))
    again = InputReceived(text="Hello!", rerun_of="e-1")
    recording.send(again, Address("ann", "again", "e-2"), ce_dataversion="2")
    write(tmp_path / "ledger.db", recording.log, partitions=recording.partitions)
    source = LedgerSource(tmp_path / "ledger.db")
    try:
        (found,) = asyncio.run(failed_decisions(source))
    finally:
        source.close()
    assert found.why_not == "sent again as e-2"


def test_of_two_inputs_of_an_exchange_the_first_is_sent_again(tmp_path: Path) -> None:
    recording = Recording(ACTORS.values())
    recording.configure()
    for text in ("first", "second"):
        recording.send(InputReceived(text=text), Address("ann", "noon", "e-1"))
    recording.send(end("FAILED"), Address("ann", "noon", "e-1"))
    write(tmp_path / "ledger.db", recording.log, partitions=recording.partitions)
    source = LedgerSource(tmp_path / "ledger.db")

    async def texts() -> list[str]:
        return [text async for _, _, text in inputs_to_redrive(source, await failed_decisions(source))]

    try:
        assert asyncio.run(texts()) == ["first"]
    finally:
        source.close()


def test_an_end_that_a_later_release_wrote_is_no_lack_of_an_end(tmp_path: Path) -> None:
    recording = Recording(ACTORS.values())
    recording.configure()
    recording.send(InputReceived(text="Hello!"), Address("ann", "noon", "e-1"))
    recording.settle()
    recording.send(MemoryFailed(**FAILURE), Address("ann", "noon", "e-1"))
    log = [
        msgspec.structs.replace(each, headers=each.headers | {"ce-dataversion": "2"})
        if each.subject.endswith("response.emitted")
        else each
        for each in recording.log
    ]
    write(tmp_path / "ledger.db", log, partitions=recording.partitions)
    source = LedgerSource(tmp_path / "ledger.db")
    [failed] = asyncio.run(failed_decisions(source))
    source.close()
    assert failed.ended == "UNREADABLE"
    assert "cannot read how its exchange ended" in failed.why_not


def test_what_ended_failed_without_a_failure_on_record_has_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As at a deadline, or since nobody served a guard."""
    recording = Recording(ACTORS.values())
    recording.configure()
    for exchange, purpose, version in (("e-1", "answer", "1"), ("e-2", "check", "1"), ("e-3", "answer", "2")):
        received = InputReceived(text="Hello!", purpose=purpose)  # type: ignore[arg-type]
        recording.send(received, Address("ann", "noon", exchange), ce_dataversion=version)
        silent = msgspec.structs.replace(end("FAILED"), stage="ARBITER", reason="no_owner: arbiter")
        recording.send(silent, Address("ann", "noon", exchange))
    recording.send(InputReceived(text="Hello!", rerun_of="e-3"), Address("ann", "again", "e-4"))
    write(tmp_path / "ledger.db", recording.log, partitions=recording.partitions)
    monkeypatch.chdir(tmp_path)
    listed = rows(neuraxis("failed", "list", "--log", "ledger.db", "--actor", "arbiter", "--json"))
    assert [(row["reason"], row["exchange"], row["ended"], row["rerun"]) for row in listed] == [
        ("no_owner: arbiter", "e-1", "FAILED", ""),
        ("no_owner: arbiter", "e-3", "FAILED", "e-4"),
    ]
    assert {row["failed_topic"] for row in listed} == {topic_of(InputReceived)}


@pytest.mark.parametrize("failing", [MemoryFailed(**FAILURE), end("FAILED")], ids=["failure", "end"])
def test_failures_that_a_later_release_wrote_are_no_lack_of_failures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: Event
) -> None:
    recording = Recording(ACTORS.values())
    recording.configure()
    recording.send(InputReceived(text="Hello!"), Address("ann", "noon", "e-1"))
    recording.send(failing, Address("ann", "noon", "e-1"), ce_dataversion="2")
    (tmp_path / ".neuraxis").mkdir()
    write(tmp_path / ".neuraxis" / "ledger.db", recording.log, partitions=recording.partitions)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NATS_URL", raising=False)
    for command in ("list", "redrive"):
        refused = neuraxis("failed", command, status=1)
        assert "no failure that can be read is on record; 1 cannot be" in refused.stderr


@pytest.fixture
def with_failures(broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Broker:
    """A log in which three exchanges FAILED, one ended without memory, and one failure is of no exchange.

    The input of the first that FAILED cannot be sent again.
    """

    async def make() -> None:
        log = await JetStreamLog.connect(broker.url)
        await store(log, InputReceived(text="When does it leave?", left_out=2), "e-0")
        await store(log, end("FAILED"), "e-0")
        for exchange, failed, action in (
            ("e-1", ReflexFailed(**FAILURE), "FAILED"),
            ("e-2", MemoryFailed(**FAILURE), "EXECUTED"),
            ("e-3", ReflexFailed(**FAILURE), "FAILED"),
        ):
            await store_input(log, exchange, "forward" if exchange == "e-3" else "answer")
            await store(log, failed, exchange)
            await store(log, end(action), exchange)  # type: ignore[arg-type]
        await store(log, RegulatorFailed(**FAILURE))
        await log.close()

    asyncio.run(make())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NATS_URL", broker.url)
    return broker


@pytest.fixture
def answering(with_failures: Broker) -> Iterator[list[Action]]:
    """Ends each new exchange, in the place of workers: with the actions in this list, then as EXECUTED."""
    actions: list[Action] = []
    listening: Future[Callable[[], object]] = Future()

    async def answer() -> None:
        loop, stop = asyncio.get_running_loop(), asyncio.Event()
        log = await JetStreamLog.connect(with_failures.url)
        tail = await log.tail([topic_filter(topic_of(InputReceived))], (await log.info()).last_seq)
        reading = asyncio.create_task(_answer(log, tail, actions))
        listening.set_result(lambda: loop.call_soon_threadsafe(stop.set))
        await stop.wait()
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
        await tail.close()
        await log.close()

    thread = Thread(target=asyncio.run, args=(answer(),))
    thread.start()
    stop = listening.result(30)
    yield actions
    stop()
    thread.join(30)


async def _answer(log: JetStreamLog, tail: Tail, actions: list[Action]) -> None:
    while True:
        for stored in await tail.next():
            record = decode(stored)
            if isinstance(record, Recorded):
                await store(log, end(actions.pop(0) if actions else "EXECUTED"), record.message.exchange)


def neuraxis(*arguments: str, status: int = 0) -> Result:
    result = CliRunner().invoke(main, list(arguments))
    assert result.exit_code == status, result.output
    return result


def rows(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def inputs(broker: Broker) -> Sequence[Recorded]:
    async def read() -> list[Recorded]:
        log = await JetStreamLog.connect(broker.url)
        filters, upto = [topic_filter(topic_of(InputReceived))], (await log.info()).last_seq
        found = [decode(stored) async for batch in log.history(filters, 0, upto) for stored in batch]
        await log.close()
        return [each for each in found if isinstance(each, Recorded)]

    return asyncio.run(read())


def test_failures_are_listed_with_what_became_of_their_exchanges(with_failures: Broker) -> None:
    listed = rows(neuraxis("failed", "list", "--json"))
    assert [(row["actor"], row["exchange"], row["ended"], row["rerun"]) for row in listed] == [
        ("responder", "e-0", "FAILED", ""),
        ("reflex", "e-1", "FAILED", ""),
        ("memory", "e-2", "EXECUTED", ""),
        ("reflex", "e-3", "FAILED", ""),
        ("regulator", "", "", ""),
    ]
    assert [row["actor"] for row in rows(neuraxis("failed", "list", "--actor", "memory", "--json"))] == ["memory"]
    assert "nothing of router has failed" in neuraxis("failed", "list", "--actor", "router").stderr


def test_a_dry_run_tells_what_would_be_sent_and_sends_nothing(
    with_failures: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def search(_: StreamSource, exchange: str) -> list[Stored]:
        raise AssertionError(f"the stream is searched for {exchange}, as for each other one")

    monkeypatch.setattr(StreamSource, "exchange", search)
    planned = neuraxis("failed", "redrive", "--json")
    first, *others = rows(planned)
    assert (first["exchange"], first["redrive"]) == ("e-0", False)
    assert "2 layers of exchange e-0 were never read" in first["why_not"]
    assert [(row["exchange"], row["redrive"], row["why_not"]) for row in others] == [
        ("e-1", True, ""),
        ("e-2", False, "its exchange ended EXECUTED without it"),
        ("e-3", True, ""),
        ("", False, "it belongs to no exchange"),
    ]
    assert "2 inputs would be sent again: --yes sends them" in neuraxis("failed", "redrive").stderr
    assert len(inputs(with_failures)) == 4
    refused = neuraxis("failed", "redrive", "1", "--yes", status=1)
    assert "no failure is recorded at sequence 1" in refused.stderr


def test_what_failed_is_sent_again_once_in_its_session_as_it_was(
    with_failures: Broker, answering: list[Action]
) -> None:
    answering.append("FAILED")
    again = neuraxis("failed", "redrive", "--yes", "--json", status=1)
    assert "1 exchange FAILED again" in again.stderr
    assert [(row["rerun_of"], row["action"]) for row in rows(again)] == [("e-1", "FAILED"), ("e-3", "EXECUTED")]

    before, after = inputs(with_failures)[1:4], inputs(with_failures)[4:]
    assert len(after) == 2
    once_more = rows(neuraxis("failed", "redrive", "--yes", "--json", status=1))
    assert [(row["rerun_of"], row["action"]) for row in once_more] == [(after[0].message.exchange, "EXECUTED")]
    refused = neuraxis("failed", "redrive", "--yes", "--json", status=1)
    assert refused.stdout == ""
    assert "not sent again: e-0: 2 layers" in refused.stderr
    assert "1 input cannot be sent again" in refused.stderr
    for old, new in ((before[0], after[0]), (before[2], after[1])):
        assert isinstance(old.message.event, InputReceived)
        assert isinstance(new.message.event, InputReceived)
        assert (new.message.agent, new.message.session) == ("ann", "talk")
        assert new.message.event.layers == LAYERS
        assert (new.message.event.text, new.message.event.situation) == ("When does it leave?", "travel")
        assert new.message.event.rerun_of == old.message.exchange
    # Who forwarded it asks its own model, so that here it can only be checked.
    assert [each.message.event.purpose for each in after] == ["answer", "check"]  # type: ignore[attr-defined]


def test_nothing_is_sent_where_the_broker_is_silent_whatever_a_ledger_holds(with_failures: Broker) -> None:
    ledger = Path(".neuraxis", "ledger.db")
    ledger.parent.mkdir()
    asyncio.run(unpack(max(FOLDER.glob("*.nxb")), ledger))
    with_failures.pause()
    try:
        refused = neuraxis("failed", "redrive", "--yes", "--timeout", "1.5", status=3)
    finally:
        with_failures.resume()
    assert "nothing was sent" in refused.stderr
    assert "sent again" not in refused.output


def test_any_input_is_sent_again_in_a_session_of_its_own(with_failures: Broker, answering: list[Action]) -> None:
    (row,) = rows(neuraxis("rerun", "e-2", "--json"))
    assert (row["rerun_of"], row["agent"], row["action"]) == ("e-2", "ann", "EXECUTED")
    assert row["session"].startswith("rerun-")
    assert row["exchange"] != "e-2"
    sent = inputs(with_failures)[-1].message
    assert isinstance(sent.event, InputReceived)
    assert (sent.event.rerun_of, sent.event.layers, sent.session) == ("e-2", LAYERS, row["session"])
    shown = neuraxis("rerun", "e-1", "--session", "talk")
    assert "rerun of e-1" in shown.stdout
    assert "rerun of e-1" in neuraxis("why", "last").stdout
    assert "begins with 'e-9'" in neuraxis("rerun", "e-9", status=1).stderr
