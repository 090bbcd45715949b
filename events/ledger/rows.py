"""Conversion of stored messages to rows of the ledger, and back.

A row keeps the message exactly (sequence, server time, subject, headers, data), and the envelope's columns, which are
derived from it for queries. An unreadable message is stored all the same; its derived columns are empty.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from struct import error as StructError
from typing import Any, Final, TypeAlias

import msgspec
import orjson

from events.ledger.checking.chain import link
from events.ledger.sqlite_errors import DamagedRow
from events.log import Stored
from schemas.catalogue import decode_event
from schemas.envelope import Envelope, decode_headers, encode_value
from schemas.errors import UndecodableEvent
from schemas.event import Event
from schemas.subjects import split_stored

Text: TypeAlias = str | bytes
"""A text column: a string, or its bytes where it holds lone surrogates, which SQLite cannot store as text."""

Row: TypeAlias = tuple[int, Text, Text, Text, Text, Text, Text, int, int | None, int, Text, bytes]
"""The columns of ``COLUMNS`` without the hash, in that order."""

COLUMNS = (
    "seq", "id", "topic", "subject", "agent", "session", "exchange", "cause_seq", "version", "time", "headers",
    "data", "hash",
)  # fmt: skip

SEQ: Final = 0
TOPIC: Final = 2
SUBJECT: Final = 3
EXCHANGE: Final = 6
VERSION: Final = 8
TIME: Final = 9
HEADERS: Final = 10
DATA: Final = 11
HASH: Final = 12
"""Positions of columns in a row; literal, so that a type checker knows the type of each."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

MESSAGE_COLUMNS = "seq, time, subject, headers, data"
"""The columns that make up a message, in the order of ``Stored``."""

BATCH_ROWS = 1_024
"""Messages in a batch of :func:`batches`, at most; :data:`BATCH_BYTES` bounds their bodies."""

BATCH_BYTES = 4 * 1024 * 1024
"""Bytes of bodies after which a batch ends."""

_INT64 = 2**63

_headers_decoder = msgspec.json.Decoder(dict[str, str])


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
    """Return the string that ``to_text`` was given; raises DamagedRow when the column does not hold text."""
    if isinstance(value, str):
        return value
    try:
        return value.decode("utf-8", "surrogatepass")
    except (UnicodeDecodeError, AttributeError) as error:
        raise DamagedRow(f"a text column does not hold text: {error}") from error


def _bytes_of(value: Text) -> bytes:
    return value.encode() if isinstance(value, str) else value


def encode_header_text(headers: Mapping[str, str]) -> Text:
    """Write headers as JSON with sorted keys and no spaces: equal mappings give equal texts."""
    plain = headers if type(headers) is dict else dict(headers)
    try:
        return orjson.dumps(plain, option=orjson.OPT_SORT_KEYS).decode()
    except orjson.JSONEncodeError:
        return to_text(json.dumps(plain, sort_keys=True, ensure_ascii=False, separators=(",", ":")))


def headers_naming(exchange: str) -> str:
    """Return the text that the headers column of every message of an exchange contains."""
    return f'"ce-exchange":"{encode_value(exchange)}"'


def decode_header_text(text: Text, seq: int) -> dict[str, str]:
    """Decode a row's headers; raises DamagedRow, naming the row, if the text has changed since it was written."""
    try:
        if isinstance(text, str):
            return _headers_decoder.decode(text)
        return msgspec.convert(json.loads(from_text(text)), dict[str, str])
    except (ValueError, msgspec.DecodeError, RecursionError) as error:
        raise DamagedRow(f"the headers of row {seq} are not readable: {error}") from error


@lru_cache(maxsize=65536)
def topic_of_subject(subject: str) -> str:
    """Return the public subject of a stored one, or an empty string if there is none."""
    try:
        return split_stored(subject)[0]
    except ValueError:
        return ""


def is_int64(value: int) -> bool:
    """Whether SQLite can store a number."""
    return -_INT64 <= value < _INT64


def _readable(headers: Mapping[str, str]) -> Envelope | None:
    try:
        envelope = decode_headers(headers)
    except UndecodableEvent:
        return None
    return envelope if is_int64(envelope.cause_seq) and is_int64(envelope.version) else None


def to_row(stored: Stored) -> Row:
    """Return a message's row. ``version`` is None when the headers do not name an event of the subject's topic."""
    topic = topic_of_subject(stored.subject)
    envelope = _readable(stored.headers)
    subject = stored.subject if stored.subject.isascii() else to_text(stored.subject)
    headers = encode_header_text(stored.headers)
    if envelope is None:
        return stored.seq, "", to_text(topic), subject, "", "", "", 0, None, stored.time_ns, headers, stored.data
    id, agent, session, exchange = envelope.id, envelope.agent, envelope.session, envelope.exchange
    return (
        stored.seq,
        id if id.isascii() else to_text(id),
        topic if type(subject) is str else to_text(topic),
        subject,
        agent if agent.isascii() else to_text(agent),
        session if session.isascii() else to_text(session),
        exchange if exchange.isascii() else to_text(exchange),
        envelope.cause_seq,
        envelope.version if envelope.topic == topic else None,
        stored.time_ns,
        headers,
        stored.data,
    )


def link_row(previous: bytes, row: Row) -> bytes:
    """Return the hash of a row that follows the one with hash ``previous``."""
    return link(previous, row[SEQ], row[TIME], _bytes_of(row[SUBJECT]), _bytes_of(row[HEADERS]), row[DATA])


def is_linked(
    previous: object, seq: int, time_ns: object, subject: object, headers: object, data: object, digest: object
) -> bool:
    """Whether a row is unchanged and follows the row with hash ``previous``: its recomputed hash equals the stored one.

    Columns are given as they were read, of whatever type.
    """
    if type(previous) is not bytes or type(time_ns) is not int or type(data) is not bytes:
        return False
    if not isinstance(subject, str | bytes) or not isinstance(headers, str | bytes):
        return False
    try:
        return link(previous, seq, time_ns, _bytes_of(subject), _bytes_of(headers), data) == digest
    except StructError:
        return False


def to_stored(seq: int, time_ns: int, subject: Text, headers: Text, data: bytes) -> Stored:
    """Rebuild the message of a row; raises DamagedRow if a column has changed since it was written."""
    if type(data) is not bytes or type(time_ns) is not int:
        raise DamagedRow(f"row {seq} does not hold the types that were written")
    return Stored(seq, time_ns, from_text(subject), decode_header_text(headers, seq), data)


def batches(rows: Iterable[tuple[Any, ...]]) -> Iterator[list[Stored]]:
    """Read messages (``MESSAGE_COLUMNS``) in batches bounded in rows and in bytes, so that memory stays flat."""
    batch: list[Stored] = []
    size = 0
    for seq, time_ns, subject, headers, data in rows:
        batch.append(to_stored(seq, time_ns, subject, headers, data))
        size += len(data)
        if len(batch) == BATCH_ROWS or size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


@lru_cache(maxsize=1024)
def _second(seconds: int) -> str:
    return (_EPOCH + timedelta(seconds=seconds)).isoformat(timespec="seconds").removesuffix("+00:00")


def timestamp(time_ns: int) -> str:
    """Return a time as text for the tables; all times have the same length, so that they sort as text."""
    seconds, nanoseconds = divmod(time_ns, 1_000_000_000)
    return f"{_second(seconds)}.{nanoseconds // 1000:06d}+00:00"


def json_of(value: Any) -> str:
    """Return a value as the JSON text that the tables hold."""
    return msgspec.json.encode(value).decode()


def event_of(row: Row) -> Event:
    """Return the event of a row that can be read; raises VocabularyError for one of another shape."""
    topic, version = row[TOPIC], row[VERSION]
    assert isinstance(topic, str), "a topic that is folded into a read model is ASCII"
    assert version is not None, "unreadable rows change nothing"
    return decode_event(topic, row[DATA], version)
