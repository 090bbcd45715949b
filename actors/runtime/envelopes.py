"""Turns decided events into records: adds the envelope to a body."""

from events.decoding import Recorded, Unreadable
from events.log import Record
from events.make_decision import NewEvent
from schemas.catalogue import CATALOGUE
from schemas.envelope import BUDGET, LATENCY, MESSAGE_ID, Envelope, encode_headers
from schemas.intake.timestamps import rfc3339
from schemas.intake.trace_context import trace_id

_CONTEXT = len("00-") + 32 + len("-") + 16 + len("-01")
"""Characters of a W3C trace context: version, trace id, span id and flags."""

NO_TRACE = ("", "")
"""The trace of an event that no message caused."""


def trace_of(cause: Recorded | Unreadable | None) -> tuple[str, str]:
    """Return the exchange of a message, and its trace context; :data:`NO_TRACE` where it has none."""
    if cause is None or isinstance(cause, Unreadable):
        return NO_TRACE
    return cause.envelope.exchange, cause.envelope.traceparent


def traceparent(exchange: str, event_id: str, trace: tuple[str, str] = NO_TRACE) -> str:
    """Return the W3C trace context of an event: its span is the event itself.

    Its trace is that of its cause (see :func:`trace_of`), if both belong to one exchange: the caller's own trace if one
    came with the input. Otherwise the exchange itself is the trace.
    """
    cause_exchange, context = trace
    if cause_exchange == exchange and len(context) == _CONTEXT:
        # Version and trace id, the event's own span id, flags.
        return f"{context[:36]}{event_id[:16]}{context[52:55]}"
    return f"00-{trace_id(exchange)}-{event_id[:16]}-01"


def to_record(
    decided: NewEvent,
    source: str,
    build: str,
    now_ns: int,
    latency_us: int,
    exceeded_budget_us: int | None = None,
    trace: tuple[str, str] = NO_TRACE,
) -> Record:
    """Wrap a decided event.

    ``latency_us`` is how long its decision took, ``exceeded_budget_us`` the actor's latency budget if it took longer
    than that, else None. Both are in microseconds. They are measured, so they go into headers: the body must replay to
    the same bytes. ``trace`` is that of its cause.
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
        traceparent=traceparent(message.exchange, message.id, trace) if message.exchange else "",
    )
    headers = encode_headers(envelope)
    headers[LATENCY] = str(latency_us)
    if exceeded_budget_us is not None:
        headers[BUDGET] = str(exceeded_budget_us)
    # The message id includes the sequence of the cause. An outside event that is sent again after the broker has
    # forgotten its id is decided again, under the same event id. With the event id alone, the broker would take that
    # decision for a repeat, which would stop the partition for a deduplication window.
    headers[MESSAGE_ID] = f"{message.id}.{decided.cause_seq}"
    return Record(decided.subject, headers, decided.data)
