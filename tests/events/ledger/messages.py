"""Builders of stored messages, and of ledger files holding them."""

import asyncio
import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import strategies as st

from events.ledger import LedgerReader, LedgerWriter, Written
from events.ledger.tables import TABLES, VIEWS
from events.log import Stored
from schemas.catalogue import CATALOGUE, entry_of
from schemas.envelope import LATENCY, VERSION, Envelope, encode_headers
from schemas.event import Event, encode_event, topic_of
from schemas.identity import event_id
from schemas.subjects import Partitions, stored_subject
from schemas.vocabulary.ledger import LedgerAnchored

STREAM = "NEURAXIS"
PARTITIONS = Partitions()
START_NS = 1_700_000_000_000_000_000
MS = 1_000_000

INPUT, PASSED, MODE, RESPONSE = (
    CATALOGUE[f"forged_id.{name}"].sample
    for name in ("input.received", "reflex.passed", "router.mode_selected", "response.emitted")
)
FEEDBACK, ITERATED, FINISHED = (
    CATALOGUE[f"forged_id.{name}"].sample for name in ("router.feedback_observed", "act.iterated", "act.finished")
)
READ_MODELS = (*TABLES, *VIEWS)


async def fetched(writer: LedgerWriter, statement: str) -> Any:
    """Run a statement on a writer's own connection; return its first row, None where it has none."""
    return await writer._one(statement)


def stored(
    seq: int, event: Event, *, exchange: str = "x1", agent: str = "ada", session: str = "s1", at_ms: int = 0
) -> Stored:
    """Build a stored event as an actor's shell would have appended it, ``at_ms`` after the start."""
    topic = topic_of(event)
    envelope = Envelope(
        id=event_id(str(seq), "test", 0),
        topic=topic,
        source=f"neuraxis/{entry_of(event).owner}",
        time="2025-01-01T00:00:00Z",
        agent=agent,
        session=session,
        exchange=exchange,
        cause_seq=seq - 1,
    )
    subject = stored_subject(topic, PARTITIONS.agent_token(agent), PARTITIONS.session_token(session))
    headers = encode_headers(envelope) | {LATENCY: "2300"}
    return Stored(seq, START_NS + at_ms * MS, subject, headers, encode_event(event))


def of_later_release(message: Stored) -> Stored:
    """Return an event as a later release would have written it: in a version that this one does not know."""
    return msgspec.structs.replace(message, headers={**message.headers, VERSION: "2"})


def exchanges(count: int) -> list[Stored]:
    """Build whole exchanges of four events one after another, 10 ms between events."""
    events = (INPUT, PASSED, MODE, RESPONSE)
    return [
        stored(seq, events[(seq - 1) % 4], exchange=f"x{(seq - 1) // 4}", at_ms=10 * seq)
        for seq in range(1, 4 * count + 1)
    ]


def anchor(seq: int, through: int, rows: int, head: str) -> Stored:
    """Build a ledger's anchor as it is found in the stream."""
    return stored(seq, LedgerAnchored(through_seq=through, rows=rows, head=head), exchange="", agent="", session="")


def write(
    path: Path,
    messages: Sequence[Stored],
    *,
    size: int = 100,
    anchor_every: int = 0,
    partitions: Partitions = PARTITIONS,
) -> list[Written]:
    """Append messages to a ledger file in batches of ``size``."""

    async def main() -> list[Written]:
        async with await LedgerWriter.open(path, STREAM, partitions) as writer:
            batches = [messages[start : start + size] for start in range(0, len(messages), size)]
            return [await writer.append(batch, anchor_every) for batch in batches]

    return asyncio.run(main())


def read(path: Path) -> list[Stored]:
    """Return every message of a ledger file."""
    with LedgerReader(path) as reader:
        return [message for batch in reader.history() for message in batch]


def query(path: Path, statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
    """Query (or change) a ledger file with plain SQLite."""
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        return connection.execute(statement, parameters).fetchall()
    finally:
        connection.close()


def tables(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Return the rows of every read model."""
    return {name: query(path, f"SELECT * FROM {name} ORDER BY 1") for name in READ_MODELS}


def flip(value: bytes, bit: int) -> bytes:
    """Return bytes with one bit turned; ``bit`` counts from the first byte's lowest."""
    changed = bytearray(value)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


# Anything a string can hold in Python, lone surrogates and NUL included.
wild_text = st.text(st.characters(exclude_categories=()), max_size=20)

header_names = st.sampled_from(
    ["ce-id", "ce-type", "ce-source", "ce-agent", "ce-session", "ce-exchange", "ce-causeseq", "ce-dataversion"]
)
header_values = wild_text | st.sampled_from(["%ED%A0%80", "%", "1", "-1", "9" * 30, "forged_id.input.received"])
wild_headers = st.dictionaries(header_names | wild_text, header_values, max_size=10)
wild_subjects = st.sampled_from([f"log.00.01.{topic[10:]}" for topic in CATALOGUE] + ["log.x", "log"]) | wild_text


@st.composite
def wild_messages(draw: st.DrawFn) -> list[Stored]:
    """Draw messages of a stream of which nothing is promised but their order."""
    seqs: Iterable[int] = sorted(draw(st.sets(st.integers(1, 2**62), min_size=1, max_size=8)))
    times = st.integers(-(2**63), 2**63 - 1)
    return [
        Stored(seq, draw(times), draw(wild_subjects), draw(wild_headers), draw(st.binary(max_size=200))) for seq in seqs
    ]
