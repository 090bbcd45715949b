"""Between stored messages and rows of the ledger.

A row keeps the message exactly (sequence, server time, subject, headers, data) and, derived from these for
queries, the envelope's columns. What cannot be read is stored all the same: its derived columns are empty.
"""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import TypeAlias

import orjson

from events.errors import LedgerDamaged
from events.ledger.chain import link
from events.log import Stored
from schemas.envelope import Envelope, decode_headers
from schemas.errors import UndecodableEvent
from schemas.subjects import split_stored

Text: TypeAlias = str | bytes
"""A text column: a string, or its bytes where it holds lone surrogates, which SQLite cannot store as text."""

Row: TypeAlias = tuple[int, Text, Text, Text, Text, Text, Text, int, int | None, int, Text, bytes]
"""The columns of ``COLUMNS`` but the hash, in that order."""

COLUMNS = (
    "seq",
    "id",
    "topic",
    "subject",
    "agent",
    "session",
    "exchange",
    "cause_seq",
    "version",
    "time",
    "headers",
    "data",
    "hash",
)

_INT64 = range(-(2**63), 2**63)


def to_text(value: str) -> Text:
    """Return a string as SQLite can store it."""
    if value.isascii():
        return value
    try:
        value.encode()
    except UnicodeEncodeError:
        return value.encode("utf-8", "surrogatepass")
    return value


def from_text(value: Text) -> str:
    """Return the string that ``to_text`` was given."""
    return value if isinstance(value, str) else value.decode("utf-8", "surrogatepass")


def _bytes_of(value: Text) -> bytes:
    return value.encode() if isinstance(value, str) else value


def encode_header_text(headers: Mapping[str, str]) -> Text:
    """Spell headers as JSON with sorted keys and no spaces: one mapping, one spelling."""
    try:
        return orjson.dumps(headers if type(headers) is dict else dict(headers), option=orjson.OPT_SORT_KEYS).decode()
    except orjson.JSONEncodeError:
        return to_text(json.dumps(dict(headers), sort_keys=True, ensure_ascii=False, separators=(",", ":")))


def decode_header_text(text: Text, seq: int) -> dict[str, str]:
    """Read headers back; raises LedgerDamaged, naming the row, when the text is not what was written."""
    try:
        headers: dict[str, str] = orjson.loads(text) if isinstance(text, str) else json.loads(from_text(text))
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise LedgerDamaged(f"the headers of row {seq} are not readable: {error}") from error
    return headers


@lru_cache(maxsize=65536)
def topic_of_subject(subject: str) -> str:
    """Return the public subject of a stored one, or nothing when it has none."""
    try:
        return split_stored(subject)[0]
    except ValueError:
        return ""


def _readable(headers: Mapping[str, str]) -> Envelope | None:
    try:
        envelope = decode_headers(headers)
    except UndecodableEvent:
        return None
    return envelope if envelope.cause_seq in _INT64 and envelope.version in _INT64 else None


def to_row(stored: Stored) -> Row:
    """Return a message's row. ``version`` is None when the headers do not name an event of the subject's topic."""
    topic = topic_of_subject(stored.subject)
    envelope = _readable(stored.headers)
    subject = to_text(stored.subject)
    headers = encode_header_text(stored.headers)
    if envelope is None:
        return stored.seq, "", to_text(topic), subject, "", "", "", 0, None, stored.time_ns, headers, stored.data
    return (
        stored.seq,
        to_text(envelope.id),
        to_text(topic),
        subject,
        to_text(envelope.agent),
        to_text(envelope.session),
        to_text(envelope.exchange),
        envelope.cause_seq,
        envelope.version if envelope.topic == topic else None,
        stored.time_ns,
        headers,
        stored.data,
    )


def link_row(previous: bytes, row: Row) -> bytes:
    """Return the hash of a row that follows the one with hash ``previous``."""
    return link(previous, row[0], row[9], _bytes_of(row[3]), _bytes_of(row[10]), row[11])


def to_stored(seq: int, time_ns: int, subject: Text, headers: Text, data: bytes) -> Stored:
    """Rebuild the message of a row; raises LedgerDamaged when a column does not hold what was written there."""
    if type(data) is not bytes or type(time_ns) is not int:
        raise LedgerDamaged(f"row {seq} does not hold the types that were written")
    try:
        name = subject if type(subject) is str else from_text(subject)
    except (UnicodeDecodeError, AttributeError) as error:
        raise LedgerDamaged(f"the subject of row {seq} is not readable: {error}") from error
    return Stored(seq, time_ns, name, decode_header_text(headers, seq), data)
