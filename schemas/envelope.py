"""The envelope of an event, as headers of the CloudEvents NATS binding in binary mode.

Attributes of the CloudEvents standard and our extensions (``agent``, ``session``, ``exchange``,
``cause``, ``causeseq``, ``index``, ``count``, ``dataversion``, ``build``) are written as ``ce-`` headers with
percent-encoded values. Measured times are in ``nx-`` headers, not in bodies: a replay must make the same bodies again.
"""

import re
from collections.abc import Mapping
from urllib.parse import quote, unquote

import msgspec

from schemas.errors import UndecodableEvent
from schemas.event import ROOT

SPEC_VERSION = "1.0"
"""Version of CloudEvents."""

CONTENT_TYPE = "application/json"
MESSAGE_ID = "Nats-Msg-Id"
"""Header by which the broker recognises a repeated message."""

BUDGET = "nx-budget-us"
"""Header of the latency budget, in microseconds, of a decision that took longer; beside :data:`LATENCY`."""

LATENCY = "nx-latency-us"
"""Header of the time that a decision took, in microseconds."""

CAUSE_SEQ = "ce-causeseq"
"""Header of the stream sequence of the message that led to the event; see :class:`Envelope`."""

VERSION = "ce-dataversion"
"""Header of the version of the body's meaning; absent for version 1."""

_INPUT = f"{ROOT}.input.received"

# The binding asks for percent-encoding of space, double quote, percent sign and everything outside
# printable ASCII; quote() encodes all but its safe set, so the safe set is the rest of printable ASCII.
_SAFE = "!#$&'()*+,-./:;<=>?@[\\]^_`{|}~"
_PLAIN = re.compile("[!#$&-~]*")  # values that need no encoding


class Envelope(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Who emitted an event, about what, because of what.

    ``topic`` is its public subject, ``source`` who published it. ``cause`` is the id of the message that led to it, and
    ``cause_seq`` that message's stream sequence. If no message led to it, ``cause_seq`` is the sequence of the last
    message that its actor had folded. A decision may have several events: this one is number ``index`` (from 0) of
    ``count``. ``time`` is RFC 3339. ``version`` is that of the body's meaning. ``build`` says what decided: the version
    of the code, and a hash of the settings. ``traceparent`` is the W3C trace context.
    """

    id: str
    topic: str
    source: str
    time: str
    agent: str = ""
    session: str = ""
    exchange: str = ""
    cause: str = ""
    cause_seq: int = 0
    index: int = 0
    count: int = 1
    version: int = 1
    build: str = ""
    traceparent: str = ""


def encode_value(value: str) -> str:
    """Return a header's value, percent-encoded as the binding asks for."""
    return value if _PLAIN.fullmatch(value) else quote(value, safe=_SAFE)


def encode_headers(envelope: Envelope) -> dict[str, str]:
    """Return the message headers of an envelope.

    Attributes with their usual value (empty, index 0 of 1, version 1) are left out: each header costs every reader some
    microseconds.
    """
    headers = {
        "ce-specversion": SPEC_VERSION,
        "ce-id": encode_value(envelope.id),
        "ce-type": envelope.topic,
        "ce-source": encode_value(envelope.source),
        "ce-time": envelope.time,
        CAUSE_SEQ: str(envelope.cause_seq),
        "Content-Type": CONTENT_TYPE,
        MESSAGE_ID: envelope.id,
    }
    if envelope.count != 1 or envelope.index:
        headers["ce-index"] = str(envelope.index)
        headers["ce-count"] = str(envelope.count)
    if envelope.version != 1:
        headers[VERSION] = str(envelope.version)
    if envelope.agent:
        headers["ce-agent"] = encode_value(envelope.agent)
    if envelope.session:
        headers["ce-session"] = encode_value(envelope.session)
    if envelope.exchange:
        headers["ce-exchange"] = encode_value(envelope.exchange)
    if envelope.cause:
        headers["ce-cause"] = encode_value(envelope.cause)
    if envelope.build:
        headers["ce-build"] = encode_value(envelope.build)
    if envelope.traceparent:
        headers["traceparent"] = envelope.traceparent
    return headers


def _decode(headers: Mapping[str, str], name: str) -> str:
    value = headers.get(name, "")
    return unquote(value) if "%" in value else value


def exchange_in(headers: Mapping[str, str]) -> str:
    """Return the exchange that message headers name, empty for none. For an input that names none it is the input's id.

    So every input has an exchange, and hence an end, even one that somebody published into the log directly, and
    carelessly.
    """
    return _decode(headers, "ce-exchange") or (_decode(headers, "ce-id") if headers.get("ce-type") == _INPUT else "")


def address_in(headers: Mapping[str, str]) -> tuple[str, str]:
    """Return the agent and the session that message headers name, empty for none."""
    return _decode(headers, "ce-agent"), _decode(headers, "ce-session")


def decode_headers(headers: Mapping[str, str]) -> Envelope:
    """Return the envelope that message headers hold.

    Raises:
        UndecodableEvent: a required attribute is missing, or a number is not one or below its range.
    """
    try:
        envelope = Envelope(
            id=_decode(headers, "ce-id") if "%" in headers["ce-id"] else headers["ce-id"],
            topic=headers["ce-type"],
            source=_decode(headers, "ce-source"),
            time=headers.get("ce-time", ""),
            agent=_decode(headers, "ce-agent"),
            session=_decode(headers, "ce-session"),
            exchange=exchange_in(headers),
            cause=_decode(headers, "ce-cause"),
            cause_seq=int(headers.get(CAUSE_SEQ, 0)),
            index=int(headers.get("ce-index", 0)),
            count=int(headers.get("ce-count", 1)),
            version=int(headers.get(VERSION, 1)),
            build=_decode(headers, "ce-build"),
            traceparent=headers.get("traceparent", ""),
        )
    except KeyError as missing:
        raise UndecodableEvent(f"header {missing} is missing: not a CloudEvents message in binary mode") from missing
    except ValueError as wrong:
        raise UndecodableEvent(f"a numeric ce- header is not a number: {wrong}") from wrong
    if envelope.cause_seq < 0 or not 0 <= envelope.index < envelope.count:
        raise UndecodableEvent(
            f"numeric ce- headers out of range: causeseq {envelope.cause_seq} is below 0, or index {envelope.index} is "
            f"not one of the {envelope.count} from 0 on"
        )
    return envelope
