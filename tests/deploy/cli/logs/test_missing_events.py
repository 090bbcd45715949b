"""A log that lost events within itself: whoever reads the place is told, of the live stream as of a ledger."""

import asyncio
import json
from pathlib import Path

import msgspec
import pytest

from events.bundles import read_manifest
from events.jetstream import JetStreamLog
from events.log import Append, Record, Stored
from schemas.event import topic_of
from schemas.intake.timestamps import rfc3339
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.ledger import LossRecorded
from tests.broker import Broker
from tests.deploy.cli.logs.test_nothing_there import READING, in_a_folder, neuraxis, talk
from tests.each import each
from tests.events.ledger.messages import stored, write
from tests.events.recording import PARTITIONS
from tests.faults.cuts import flip_bit_of

__all__ = ["in_a_folder", "talk"]

MISSING = "1 event is missing from the {} {}: sequence {:,}."
ELSEWHERE = {("log", "verify"), ("log", "rebuild"), ("log", "archive"), ("backup", "kept"), ("diff", "1")}
"""Commands that tell of it in words of their own, copy rows as they are, or read another part."""


def last_exchange(talk: list[Stored]) -> list[Stored]:
    begun = [each for each in talk if each.headers["ce-type"] == topic_of(InputReceived)][-1]
    return [each for each in talk if each.headers.get("ce-exchange") == begun.headers["ce-exchange"]]


@pytest.fixture
def lost(talk: list[Stored]) -> int:
    """The sequence of the second event of the last exchange."""
    return last_exchange(talk)[1].seq


@pytest.fixture
def ledger(talk: list[Stored], lost: int, tmp_path: Path) -> Path:
    """A ledger whose log lost an event, and recorded that."""
    loss = LossRecorded(first_seq=lost, through_seq=lost, known_by="stream", given_again=False)
    record = stored(talk[-1].seq + 1, loss, exchange="", agent="", session="")
    record = msgspec.structs.replace(record, time_ns=talk[-1].time_ns)
    path = tmp_path / "ledger.db"
    write(path, [*(each for each in talk if each.seq != lost), record], partitions=PARTITIONS)
    return path


@pytest.fixture
def rotting() -> str:
    return "second"


@pytest.fixture
def rotten(talk: list[Stored], rotting: str, lost: int, broker: Broker) -> str:
    """A broker whose stream holds an event that cannot be read any more; nobody has recorded that. Its address."""

    async def main() -> None:
        log = await JetStreamLog.connect(broker.url, partitions=PARTITIONS)
        for event in talk:
            await log.append([Append((Record(event.subject, event.headers, event.data),))])
        await log.close()

    asyncio.run(main())
    broker.stop()
    flip_bit_of(broker.store, lost if rotting == "second" else last_exchange(talk)[0].seq)
    broker.start()
    return broker.url


@each("command", [each for each in READING if each[:2] not in ELSEWHERE], named=" ".join)
def test_every_command_says_what_the_log_lost_of_what_it_reads(
    command: tuple[str, ...], ledger: Path, lost: int
) -> None:
    result = neuraxis(*command, ledger)
    assert MISSING.format("ledger", ledger, lost) in result.stderr, result.output


@pytest.mark.parametrize("kept", ["ledger-before-loss-40.db", ""])
def test_an_exchange_that_may_have_been_lost_is_looked_for_where_it_may_be(kept: str, talk: list[Stored]) -> None:
    loss = LossRecorded(first_seq=40, through_seq=60, known_by="ledger", given_again=True, kept_as=kept)
    record = stored(talk[-1].seq + 1, loss, exchange="", agent="", session="")
    write(Path("ledger.db"), [*talk, record], partitions=PARTITIONS)
    refused = neuraxis("why", "01aa", "--log", "ledger.db")
    assert (refused.exit_code, "look with --log, beside the ledger, in" in refused.stderr) == (1, bool(kept))
    assert kept in refused.stderr


def test_what_was_lost_elsewhere_is_not_told(ledger: Path, lost: int) -> None:
    shown = neuraxis("log", "tail", "--count", "1", "--log", ledger)
    assert (shown.exit_code, shown.stderr) == (0, "")


@each(
    "command",
    [
        ("replay",),
        ("state", "router", "evening"),
        ("diff", "1", "80"),
        ("log", "tail", "--no-follow", "--count", "1000"),
        ("log", "export", "-o", "out.jsonl"),
        ("why", "last"),
        ("alerts", "--no-follow"),
        ("log", "tail", "--no-follow", "--topic", "forged_id.response.emitted"),
        ("precedents", "list"),
    ],
    named=" ".join,
)
def test_a_gap_in_the_stream_that_nobody_has_recorded_is_told(command: tuple[str, ...], rotten: str, lost: int) -> None:
    result = neuraxis(*command, "--nats", rotten)
    assert MISSING.format("stream NEURAXIS at", rotten, lost) in result.stderr, result.output


def test_a_backup_that_cannot_be_restored_says_so(ledger: Path, talk: list[Stored]) -> None:
    made = neuraxis("backup", "kept", "--ledger", ledger, "--json")
    assert (made.exit_code, json.loads(made.stdout)["restorable"]) == (0, False)
    assert "1 event that the log has lost is not in the copy" in made.stderr
    refused = neuraxis("restore", "kept", "--data", "restored")
    assert (refused.exit_code, "is of a log that lost" in refused.stderr) == (2, True)
    write(Path("whole.db"), talk, partitions=PARTITIONS)
    whole = neuraxis("backup", "whole", "--ledger", "whole.db", "--json")
    assert (json.loads(whole.stdout)["restorable"], whole.stderr) == (True, "")


def test_an_export_of_a_log_that_lost_an_event_is_a_bundle_that_says_so(
    ledger: Path, lost: int, talk: list[Stored]
) -> None:
    behind = next(each for each in talk if each.seq == lost + 1)
    for command in (
        ("log", "export", "--format", "bundle", "-o", "out.nxb"),
        ("log", "export", "--format", "bundle", "-o", "timed.nxb", "--to", rfc3339(behind.time_ns)),
        ("log", "export", "--format", "bundle", "-o", "short.nxb", "--to", str(lost + 1)),
        ("log", "record", "case", "--folder", "kept", "--last", "1"),
    ):
        made = neuraxis(*command, "--log", ledger)
        assert made.exit_code == 0, made.output
    for bundle in (Path("out.nxb"), Path("short.nxb"), Path("timed.nxb"), *Path("kept").glob("*.nxb")):
        manifest = read_manifest(bundle)
        assert (manifest.missing, manifest.events, manifest.last_seq) == (((lost, lost),), len(talk), len(talk) + 1)
        verified = neuraxis("log", "verify", "--log", bundle)
        assert (verified.exit_code, f"lost: 1 message, sequence {lost}" in verified.stdout) == (0, True), (
            verified.output
        )
        assert MISSING.format("bundle", bundle, lost) in neuraxis("replay", "--log", bundle).stderr


def test_a_bundle_of_a_log_that_lost_an_event_is_no_stream(ledger: Path) -> None:
    neuraxis("log", "export", "--format", "bundle", "-o", "out.nxb", "--log", ledger)
    refused = neuraxis("log", "import", "out.nxb", "--data", "other")
    assert refused.exit_code == 2
    assert "read it with --log" in refused.stderr


def test_a_bundle_lacks_nothing_that_no_record_tells_of(talk: list[Stored], lost: int, tmp_path: Path) -> None:
    path = tmp_path / "untold.db"
    write(path, [each for each in talk if each.seq != lost], partitions=PARTITIONS)
    refused = neuraxis("log", "export", "--format", "bundle", "-o", "out.nxb", "--log", path)
    assert refused.exit_code == 2
    assert f"{lost} is missing before {lost + 1}" in refused.stderr


def test_an_event_that_was_lost_and_stored_again_has_no_share_of_the_way(
    ledger: Path, talk: list[Stored], lost: int
) -> None:
    """It stands behind what had followed from it."""
    again = next(each for each in talk if each.seq == lost)
    path, last = ledger.with_name("again.db"), talk[-1].seq
    repeated = msgspec.structs.replace(again, seq=last + 1, time_ns=talk[-1].time_ns + 5_000_000_000)
    write(path, [*(each for each in talk if each.seq != lost), repeated], partitions=PARTITIONS)
    shown = neuraxis("why", "last", "--log", path)
    assert f"stored again at sequence {last + 1}, behind what had followed from it" in shown.stdout, shown.output
    assert not [line for line in shown.stdout.splitlines() if "-" in line and "%" in line]


def test_the_gap_stands_in_the_explanation_of_its_exchange(ledger: Path, lost: int) -> None:
    assert json.loads(neuraxis("why", "last", "--json", "--log", ledger).stdout)["missing"] == [[lost, lost]]


@pytest.mark.parametrize("rotting", ["input"])
def test_an_exchange_whose_input_is_lost_is_found_in_the_stream(rotten: str, talk: list[Stored]) -> None:
    exchange = last_exchange(talk)[0].headers["ce-exchange"]
    for name in (exchange, exchange[:20], "last"):
        shown = neuraxis("why", name, "--nats", rotten)
        assert "causal chain: broken" in shown.stdout or name == "last", shown.output
        assert shown.exit_code == 0
