"""AsyncAPI 3.0 of the catalogue: channels are the public subjects, operations say who alone publishes there.

Payload schemas are written as AsyncAPI's default format wants them, a superset of JSON Schema draft 07.
"""

from importlib.metadata import version
from typing import Any

import msgspec

from schemas.catalogue import CATALOGUE
from schemas.entry import Entry
from schemas.envelope import CONTENT_TYPE
from schemas.event import encode_event
from schemas.export.headers import headers_schema, sample_headers
from schemas.export.jsonschema import components
from schemas.subjects import NO_PARTITION, STORED_ROOT

ASYNCAPI_VERSION = "3.0.0"
"""Version of AsyncAPI that the document follows."""

STORED_CHANNEL = "stored"
"""Key of the channel that stands for the log's own subjects, whose address carries the partition tokens."""

_DESCRIPTION = (
    "Every event is appended to one JetStream stream under its stored subject, and the stream republishes it, headers "
    "included, under its public subject. Subscribe to public subjects with any NATS client; for a durable reading make "
    "a consumer on the stream, filtered by stored subjects. A subject has one owner, which alone may publish it."
)


def asyncapi_document() -> dict[str, Any]:
    """Return the AsyncAPI 3.0 document of the whole catalogue, for the installed version of this distribution.

    Channels and messages are keyed by public subject; operations by ``<owner>.sends.<subject>`` for what appears on a
    public subject, and ``<owner>.appends`` for what the owner writes to the log.
    """
    entries = tuple(CATALOGUE.values())
    references, definitions = components(entries, "#/components/schemas/{name}")
    payloads = {entry.topic: reference for entry, reference in zip(entries, references, strict=True)}
    owners = sorted({entry.owner for entry in entries})
    return {
        "asyncapi": ASYNCAPI_VERSION,
        "info": {
            "title": "Neuraxis",
            "version": version("neuraxis"),
            "description": _DESCRIPTION,
            "license": {"name": "Apache-2.0", "url": "https://www.apache.org/licenses/LICENSE-2.0"},
            "tags": [{"name": owner, "description": f"Published by {owner} alone."} for owner in owners],
        },
        "defaultContentType": CONTENT_TYPE,
        "servers": {
            "local": {"host": "127.0.0.1:4222", "protocol": "nats", "description": "A broker on this machine."}
        },
        "channels": {entry.topic: _channel(entry) for entry in entries} | {STORED_CHANNEL: _stored_channel(entries)},
        "operations": {f"{entry.owner}.sends.{entry.topic}": _sends(entry) for entry in entries}
        | {f"{owner}.appends": _appends(owner, entries) for owner in owners},
        "components": {
            "messages": {entry.topic: _message(entry, payloads[entry.topic]) for entry in entries},
            "schemas": {name: to_draft_07(schema) for name, schema in definitions.items()}
            | {"EventHeaders": headers_schema()},
        },
    }


def to_draft_07(schema: Any) -> Any:
    """Rewrite a draft 2020-12 schema in draft 07; of what msgspec writes, only tuples are spelt differently."""
    if isinstance(schema, list):
        return [to_draft_07(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    rewritten = {key: to_draft_07(value) for key, value in schema.items()}
    # Only if it is a list: among the properties of an object it may be a field's name.
    if isinstance(schema.get("prefixItems"), list):
        rewritten["additionalItems"] = rewritten.get("items", True)
        rewritten["items"] = rewritten.pop("prefixItems")
    return rewritten


def _channel(entry: Entry) -> dict[str, Any]:
    return {
        "address": entry.topic,
        "title": entry.topic,
        "description": entry.meaning,
        "messages": {entry.topic: {"$ref": f"#/components/messages/{entry.topic}"}},
        "tags": [{"name": entry.owner}],
    }


def _stored_channel(entries: tuple[Entry, ...]) -> dict[str, Any]:
    partition = f"Its partition: FNV-1a 32 of the id modulo the stream's count, two digits; `{NO_PARTITION}` for none."
    partition += " In a repartitioned log, the number of its repartitionings and a dash stand before it: `1-20`."
    return {
        "address": f"{STORED_ROOT}.{{agentPartition}}.{{sessionPartition}}.{{event}}",
        "title": "The log",
        "description": "Subjects of the stream itself: durable consumers filter by them, and owners append to them.",
        "parameters": {
            "agentPartition": {"description": f"The agent. {partition}", "examples": ["02", NO_PARTITION]},
            "sessionPartition": {"description": f"The session. {partition}", "examples": ["13", NO_PARTITION]},
            "event": {
                "description": "The public subject without its first token: one token or several.",
                "examples": ["response.emitted"],
            },
        },
        "messages": {entry.topic: {"$ref": f"#/components/messages/{entry.topic}"} for entry in entries},
    }


def _message(entry: Entry, payload: dict[str, Any]) -> dict[str, Any]:
    severity = [{"name": f"severity:{entry.severity}"}] if entry.severity else []
    return {
        "name": entry.topic,
        "title": entry.event.__name__,
        "summary": entry.meaning,
        "contentType": CONTENT_TYPE,
        "headers": {"$ref": "#/components/schemas/EventHeaders"},
        "payload": payload,
        "correlationId": {
            "description": "The exchange: an input and all that follows from it.",
            "location": "$message.header#/ce-exchange",
        },
        "tags": [{"name": entry.owner}, {"name": f"scope:{entry.scope}"}, *severity],
        "examples": [
            {
                "name": "sample",
                "headers": sample_headers(entry),
                "payload": msgspec.json.decode(encode_event(entry.sample)),
            },
        ],
        "x-version": entry.version,
        "x-spontaneous": entry.spontaneous,
    }


def _sends(entry: Entry) -> dict[str, Any]:
    return {
        "action": "send",
        "channel": {"$ref": f"#/channels/{entry.topic}"},
        "summary": entry.meaning,
        "messages": [{"$ref": f"#/channels/{entry.topic}/messages/{entry.topic}"}],
        "tags": [{"name": entry.owner}],
    }


def _appends(owner: str, entries: tuple[Entry, ...]) -> dict[str, Any]:
    return {
        "action": "send",
        "channel": {"$ref": f"#/channels/{STORED_CHANNEL}"},
        "summary": f"What {owner} alone appends to the log.",
        "messages": [
            {"$ref": f"#/channels/{STORED_CHANNEL}/messages/{entry.topic}"} for entry in entries if entry.owner == owner
        ],
        "tags": [{"name": owner}],
    }
