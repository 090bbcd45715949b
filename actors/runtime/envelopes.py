"""Turns decided events into records: adds the envelope to a body."""

from hashlib import blake2b

from events.decision import NewEvent
from events.log import Record
from schemas.catalogue import CATALOGUE
from schemas.envelope import BUDGET, LATENCY, MESSAGE_ID, Envelope, encode_headers
from schemas.intake.timestamps import rfc3339 as rfc3339

_HEX = frozenset("0123456789abcdef")


def traceparent(exchange: str, event_id: str) -> str:
    """Return the W3C trace context of an event: the trace is its exchange, the span the event itself."""
    if len(exchange) != 32 or not _HEX.issuperset(exchange):
        exchange = blake2b(exchange.encode(), digest_size=16).hexdigest()
    return f"00-{exchange}-{event_id[:16]}-01"


def to_record(
    decided: NewEvent, source: str, build: str, now_ns: int, latency_us: int, exceeded_us: int | None = None
) -> Record:
    """Wrap a decided event. ``latency_us`` is how long its decision took, ``exceeded_us`` the budget if it took longer.

    Both are in microseconds. They are measured, so they go into headers: the body must replay to the same bytes.
    """
    message = decided.message
    envelope = Envelope(
        id=message.id,
        topic=decided.topic,
        source=source,
        time=rfc3339(now_ns),
        agent=message.agent,
        session=message.session,
        exchange=message.exchange,
        cause=decided.cause,
        cause_seq=decided.cause_seq,
        index=decided.index,
        count=decided.count,
        version=CATALOGUE[decided.topic].version,
        build=build,
        traceparent=traceparent(message.exchange, message.id) if message.exchange else "",
    )
    headers = encode_headers(envelope)
    headers[LATENCY] = str(latency_us)
    if exceeded_us is not None:
        headers[BUDGET] = str(exceeded_us)
    # The message id includes the sequence of the cause. An outside event that is sent again after the broker has
    # forgotten its id is decided again, under the same event id. With the event id alone, the broker would take that
    # decision for a repeat, which would stop the partition for a deduplication window.
    headers[MESSAGE_ID] = f"{message.id}.{decided.cause_seq}"
    return Record(decided.subject, headers, decided.data)
