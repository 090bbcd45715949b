"""JSON Schema of an event's headers: the CloudEvents attributes of ``schemas.envelope``, and a sample of them."""

from typing import Any

from schemas.entry import Entry
from schemas.envelope import BUDGET, CONTENT_TYPE, LATENCY, MESSAGE_ID, SPEC_VERSION, Envelope, encode_headers
from schemas.identity import event_id

_ENCODED = "^[!#-~]+$"
_NUMBER = "^[0-9]+$"
_SAMPLE_CAUSE = event_id("", "gateway", 0)


def headers_schema() -> dict[str, Any]:
    """Return the schema of the headers: all are strings, percent-encoded if they may hold any text.

    It uses only keywords that mean the same in drafts 07 and 2020-12.
    """
    return {
        "title": "Headers",
        "description": "CloudEvents attributes (NATS binding, binary mode) and this system's extensions.",
        "type": "object",
        "properties": {
            "ce-specversion": {"type": "string", "const": SPEC_VERSION, "description": "Version of CloudEvents."},
            "ce-id": _text("Id of the event: a hash of its cause, its owner and its index in the decision."),
            "ce-type": _text("The public subject."),
            "ce-source": _text("Who published it."),
            "ce-time": {"type": "string", "format": "date-time", "description": "When it was published (RFC 3339)."},
            "ce-agent": _text("The agent it is about."),
            "ce-session": _text("The session it is about."),
            "ce-exchange": _text("The exchange it belongs to: one input and all that followed from it."),
            "ce-cause": _text("Id of the message that led to it; absent where none did."),
            "ce-causeseq": _number("Stream sequence of the cause, or of the last message its owner had folded."),
            "ce-index": _number("Index among the events of one decision, from 0; absent for a lone event."),
            "ce-count": _number("How many events the decision has; absent for a lone event."),
            "ce-dataversion": _number("Version of the body's meaning; absent for version 1."),
            "ce-build": _text("What decided: code version and settings hash."),
            "traceparent": {"type": "string", "description": "W3C trace context."},
            LATENCY: _number("How long the decision took, in microseconds."),
            BUDGET: _number("The latency budget of its stage, in microseconds, where the decision took longer."),
            "Content-Type": {"type": "string", "const": CONTENT_TYPE},
            MESSAGE_ID: {
                "type": "string",
                "minLength": 1,
                "description": "The broker drops repeats of it. The id; an actor's event adds its cause's sequence.",
            },
        },
        "required": [
            "ce-specversion",
            "ce-id",
            "ce-type",
            "ce-source",
            "ce-time",
            "ce-causeseq",
            "Content-Type",
            MESSAGE_ID,
        ],
    }


def sample_headers(entry: Entry) -> dict[str, str]:
    """Return the headers that the entry's sample could travel with."""
    caused = not entry.spontaneous
    return encode_headers(
        Envelope(
            id=event_id(_SAMPLE_CAUSE, entry.owner, 0),
            topic=entry.topic,
            source=entry.owner,
            time="2025-01-01T00:00:00Z",
            agent="" if entry.scope == "global" else "agent-1",
            session="session-1" if entry.scope == "session" else "",
            exchange="0" * 32 if caused and entry.scope == "session" else "",
            cause=_SAMPLE_CAUSE if caused else "",
            cause_seq=1,
            version=entry.version,
            build="0.1.0",
        )
    )


def _text(description: str) -> dict[str, Any]:
    return {"type": "string", "pattern": _ENCODED, "description": description}


def _number(description: str) -> dict[str, Any]:
    return {"type": "string", "pattern": _NUMBER, "description": description}
