"""JSON Schema (draft 2020-12) of every event body, for validators in any language."""

from collections.abc import Sequence
from inspect import cleandoc
from typing import Any

import msgspec

from schemas.catalogue import CATALOGUE
from schemas.entry import Entry
from schemas.errors import UnknownTopic

DIALECT = "https://json-schema.org/draft/2020-12/schema"
"""Identifier of the draft that the schemas are written in."""


def jsonschema_document(topic: str | None = None) -> dict[str, Any]:
    """Return the schema of one event's body, or of any event's body when ``topic`` is None.

    The document is self-contained: what it refers to is in its ``$defs``, named as the structs are. Text that a
    person wrote, or that answers them, carries ``x-personal: true``. Bodies may hold fields that the schema does
    not list: readers ignore them.

    Raises:
        UnknownTopic: the catalogue does not hold ``topic``.
    """
    if topic is None:
        references, definitions = components(tuple(CATALOGUE.values()), "#/$defs/{name}")
        return {
            "$schema": DIALECT,
            "title": "Neuraxis event",
            "description": "The body of any event; its topic says which.",
            "oneOf": list(references),
            "$defs": definitions,
        }
    entry = CATALOGUE.get(topic)
    if entry is None:
        raise UnknownTopic(f"{topic!r} is not in the catalogue: see `neuraxis schema subjects`")
    (reference,), definitions = components((entry,), "#/$defs/{name}")
    return {"$schema": DIALECT, "title": topic, "description": entry.meaning, **reference, "$defs": definitions}


def components(entries: Sequence[Entry], ref_template: str) -> tuple[tuple[dict[str, Any], ...], dict[str, Any]]:
    """Return a reference to the body schema of each entry, and the schemas they refer to, sorted by name.

    ``ref_template`` is the reference's form, with ``{name}`` where the schema's name goes.
    """
    references, definitions = msgspec.json.schema_components(
        [entry.event for entry in entries], ref_template=ref_template
    )
    for schema in definitions.values():
        if "description" in schema:
            schema["description"] = cleandoc(schema["description"])
    return references, dict(sorted(definitions.items()))
