"""Spans of an exchange, computed from its events: from their times, causes and decision latencies. Pure.

Each event of an exchange is a span, from the time at which its cause was stored to the time at which it was stored
itself; its parent is its cause. The input and the exchange's end make the root span. A model's answer is a client span
by OpenTelemetry's conventions for generative AI; it begins when the model was called. Spans hold names, reasons and
numbers of the vocabulary, and no words of people.
"""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Literal

import msgspec

from events.decoding import Recorded, decode
from events.log import Stored
from schemas.catalogue import CATALOGUE
from schemas.envelope import BUDGET, LATENCY, Envelope, decode_headers
from schemas.errors import UndecodableEvent
from schemas.event import Event, Failed, topic_of
from schemas.intake.trace_context import span_id, trace_id, valid_traceparent
from schemas.intake.whole_numbers import read_whole_number
from schemas.subjects import split_stored
from schemas.vocabulary.gateway import InputAnswered, InputReceived
from schemas.vocabulary.llm import LlmCompleted, LlmFailed
from schemas.vocabulary.responder import ResponseEmitted

MOST_KEPT = 10_000
"""Most exchanges that are remembered, the latest ones (later events of an older exchange get no spans), and most events
of each."""

ROOT_NAME = "exchange"
_NS_PER_US = 1_000
_SAMPLED = 1
"""The flag of a W3C trace context that asks for the trace to be recorded."""

_INPUT = topic_of(InputReceived)
# The bodies of these events are read, and those of failed decisions; of all others the headers suffice.
_DECODED = {topic_of(event) for event in (ResponseEmitted, InputAnswered, LlmCompleted, LlmFailed)}

Attribute = str | int | tuple[str, ...]


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """A finished span. Ids are hexadecimal, times are Unix nanoseconds.

    ``parent`` is empty for the root of a trace; ``remote`` says that the parent is a span of the caller. ``error`` is a
    stable reason, empty if nothing failed.
    """

    trace: str
    span: str
    parent: str
    name: str
    begin_ns: int
    end_ns: int
    attributes: dict[str, Attribute]
    kind: Literal["internal", "server", "client"] = "internal"
    remote: bool = False
    error: str = ""


class _Exchange(msgspec.Struct):
    """An exchange. ``stored`` maps the span id of each of its events to the time of storing; ``seq`` is its input's.

    ``trace`` and ``parent`` are the caller's, or a trace of its own without a parent. ``sampled``: its spans are made.
    """

    id: str
    trace: str
    span: str
    parent: str
    seq: int
    sampled: bool
    stored: dict[str, int]
    ended: bool = False


class SpanBuilder:
    """Makes the spans of the exchanges whose inputs it has been given."""

    def __init__(self) -> None:
        self._exchanges = OrderedDict[str, _Exchange]()
        self._open = OrderedDict[str, int]()

    def oldest_open(self, seq: int) -> int:
        """Return the sequence of the oldest input whose exchange has not ended; ``seq`` if all have."""
        return next(iter(self._open.values()), seq)

    def feed(self, stored: Stored) -> Sequence[Span]:
        """Give the next message of the log; return the spans that it completes."""
        try:
            envelope = decode_headers(stored.headers)
            topic = split_stored(stored.subject)[0]
        except (UndecodableEvent, ValueError):
            return ()
        if not envelope.exchange or topic not in CATALOGUE:
            return ()
        if topic == _INPUT:
            self._begin(stored, envelope)
            return ()
        exchange = self._exchanges.get(envelope.exchange)
        if exchange is None or not exchange.sampled:
            return ()
        event = _decoded(stored, topic)
        spans = [_span_of(exchange, stored, envelope, topic, event)]
        if len(exchange.stored) < MOST_KEPT:  # feedback may be given any number of times
            exchange.stored[span_id(envelope.id)] = stored.time_ns
        if isinstance(event, ResponseEmitted) and not exchange.ended:
            exchange.ended = True
            self._open.pop(exchange.id, None)
            spans.append(_root(exchange, stored, event))
        return spans

    def _begin(self, stored: Stored, envelope: Envelope) -> None:
        span = span_id(envelope.id)
        context = valid_traceparent(envelope.traceparent)
        # A traceparent is `00-<32 digits of trace>-<16 digits of parent>-<2 digits of flags>`, or empty.
        trace, parent, flags = context[3:35], context[36:52], context[53:] or "01"
        exchange = _Exchange(
            id=envelope.exchange,
            trace=trace or trace_id(envelope.exchange),
            span=span,
            parent="" if parent == span else parent,
            seq=stored.seq,
            sampled=bool(int(flags, 16) & _SAMPLED),
            stored={span: stored.time_ns},
        )
        self._exchanges[exchange.id] = exchange
        if exchange.sampled:
            self._open[exchange.id] = stored.seq
        if len(self._exchanges) > MOST_KEPT:
            oldest, _ = self._exchanges.popitem(last=False)
            self._open.pop(oldest, None)


def _decoded(stored: Stored, topic: str) -> Event | None:
    """Return the event if its span needs more than its envelope; decoding all would cost time."""
    if topic not in _DECODED and not issubclass(CATALOGUE[topic].event, Failed):
        return None
    recorded = decode(stored)
    return recorded.message.event if isinstance(recorded, Recorded) else None


def _span_of(exchange: _Exchange, stored: Stored, envelope: Envelope, topic: str, event: Event | None) -> Span:
    entry = CATALOGUE[topic]
    cause = span_id(envelope.cause) if envelope.cause else ""
    known = cause in exchange.stored
    took_ns = (read_whole_number(stored.headers.get(LATENCY, "")) or 0) * _NS_PER_US
    begin = exchange.stored[cause] if known else stored.time_ns - took_ns
    attributes: dict[str, Attribute] = {
        "neuraxis.exchange": exchange.id,
        "neuraxis.actor": entry.owner,
        "neuraxis.event": topic,
        "neuraxis.seq": stored.seq,
        "neuraxis.took_us": took_ns // _NS_PER_US,
    }
    if (budget_us := read_whole_number(stored.headers.get(BUDGET, ""))) is not None:
        attributes["neuraxis.budget_us"] = budget_us
    name = f"{entry.owner} {topic.rpartition('.')[2]}"
    error = event.reason if isinstance(event, Failed) else ""

    if isinstance(event, LlmCompleted | LlmFailed | InputAnswered):
        begin = max(begin, stored.time_ns - took_ns) if took_ns else begin
        attributes |= {"gen_ai.operation.name": "chat", **_call_attributes(event)}
        name = f"chat {attributes.get('gen_ai.response.model', '')}".strip()
    if error:
        attributes["error.type"] = error
    return Span(
        trace=exchange.trace,
        span=span_id(envelope.id),
        parent=cause if known else exchange.span,
        name=name,
        begin_ns=min(begin, stored.time_ns),
        end_ns=stored.time_ns,
        attributes=attributes,
        kind="client" if "gen_ai.operation.name" in attributes else "internal",
        error=error,
    )


def _call_attributes(event: LlmCompleted | LlmFailed | InputAnswered) -> dict[str, Attribute]:
    """Return the attributes of a model's answer, by the conventions for generative AI."""
    if isinstance(event, LlmFailed):
        return {"gen_ai.provider.name": "openai", "neuraxis.purpose": event.purpose or ""}
    attributes: dict[str, Attribute] = {"gen_ai.provider.name": "openai"}
    if isinstance(event, LlmCompleted):
        attributes |= {"gen_ai.provider.name": event.backend, "neuraxis.purpose": event.purpose}
        attributes["neuraxis.attempts"] = event.attempts
        reasons: tuple[str, ...] = (event.ended,)
    else:
        reasons = tuple(choice.finish_reason for choice in event.choices)
    if event.model:
        attributes["gen_ai.response.model"] = event.model
    if any(reasons):
        attributes["gen_ai.response.finish_reasons"] = reasons
    if event.prompt_tokens:
        attributes["gen_ai.usage.input_tokens"] = event.prompt_tokens
    if event.completion_tokens:
        attributes["gen_ai.usage.output_tokens"] = event.completion_tokens
    return attributes


def _root(exchange: _Exchange, stored: Stored, end: ResponseEmitted) -> Span:
    attributes: dict[str, Attribute] = {
        "neuraxis.exchange": exchange.id,
        "neuraxis.stage": end.stage,
        "neuraxis.action": end.action,
        "neuraxis.mode": end.mode or "",
        "neuraxis.seq": exchange.seq,
    }
    failed = end.action == "FAILED"
    if failed:
        attributes["error.type"] = "FAILED"
    return Span(
        trace=exchange.trace,
        span=exchange.span,
        parent=exchange.parent,
        remote=bool(exchange.parent),
        name=ROOT_NAME,
        kind="server",
        begin_ns=exchange.stored[exchange.span],
        end_ns=stored.time_ns,
        attributes=attributes,
        error="FAILED" if failed else "",
    )
