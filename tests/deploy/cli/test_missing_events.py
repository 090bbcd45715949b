"""A log that lost events within itself: whoever reads the place is told, of the live stream as of a ledger."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from events.jetstream import JetStreamLog
from events.log import Append, Record, Stored
from schemas.event import topic_of
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.ledger import LossRecorded
from tests.broker import Broker
from tests.deploy.cli.test_nothing_there import READING, in_a_folder, neuraxis, talk
from tests.events.ledger.messages import stored, write
from tests.events.recording import PARTITIONS
from tests.faults.cuts import flip_bit_of

__all__ = ["in_a_folder", "talk"]

MISSING = "1 event is missing from the {} {}: sequence {:,}."
ELSEWHERE = {("log", "verify"), ("log", "rebuild"), ("backup", "kept"), ("diff", "1"), ("log", "record")}
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
def rotten(talk: list[Stored], lost: int, broker: Broker) -> str:
    """A broker whose stream holds an event that cannot be read any more; nobody has recorded that. Its address."""

    async def main() -> None:
        log = await JetStreamLog.connect(broker.url, partitions=PARTITIONS)
        for each in talk:
            await log.append([Append((Record(each.subject, each.headers, each.data),))])
        await log.close()

    asyncio.run(main())
    broker.stop()
    flip_bit_of(broker.store, lost)
    broker.start()
    return broker.url


@pytest.mark.parametrize("command", [each for each in READING if each[:2] not in ELSEWHERE], ids=" ".join)
def test_every_command_says_what_the_log_lost_of_what_it_reads(
    command: tuple[str, ...], ledger: Path, lost: int
) -> None:
    result = neuraxis(*command, ledger)
    assert MISSING.format("ledger", ledger, lost) in result.stderr, result.output


def test_what_was_lost_elsewhere_is_not_told(ledger: Path, lost: int) -> None:
    shown = neuraxis("log", "tail", "--count", "1", "--log", ledger)
    assert (shown.exit_code, shown.stderr) == (0, "")


@pytest.mark.parametrize(
    "command",
    [
        ("replay",),
        ("state", "router", "evening"),
        ("diff", "1", "80"),
        ("log", "tail", "--no-follow", "--count", "1000"),
        ("log", "export", "-o", "out.jsonl"),
        ("why", "last"),
    ],
    ids=" ".join,
)
def test_a_gap_in_the_stream_that_nobody_has_recorded_is_told(command: tuple[str, ...], rotten: str, lost: int) -> None:
    result = neuraxis(*command, "--nats", rotten)
    assert MISSING.format("stream NEURAXIS at", rotten, lost) in result.stderr, result.output
