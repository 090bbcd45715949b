"""Whether a decision made again equals the recorded one, even if the recording release knew fewer fields.

Both bodies are decoded, upcast to today's version and encoded again. The fields that the recorded body has are
compared, at every depth. Fields that it could not have had are listed separately, as new. Keys of maps and elements of
lists are not fields: maps and lists are compared whole.

No comparison may be unable to fail. A recorded field that today's type does not know is a difference. A required field
cannot be missing, since such a body is not decoded. A field with a default counts as missing, not as new, if the same
partition has recorded it before in a body of the same subject, version and build: a writer omits no field.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from events.decoding import Recorded
from events.make_decision import NewEvent
from schemas.catalogue import CATALOGUE, decode_event, upcast_body
from schemas.errors import VocabularyError
from schemas.event import Event

_BODIES_INSPECTED = 25
"""Fields are noted in this many bodies of a subject, version and build that were made again byte-identical.

Later bodies have the same fields.
"""

_NOT_RECORDED: Any = object()
"""Stands for a value that was not recorded."""

_WITHOUT_FIELDS = frozenset((str, int, float, bool, type(None)))
"""Types of values that have no fields: most values are of these."""

_decoder = msgspec.json.Decoder()
_encoder = msgspec.json.Encoder(order="deterministic")

Kind = tuple[str, int, str]
"""A public subject, the version of its bodies, and the build that wrote them."""


class BodyComparison(msgspec.Struct, frozen=True):
    """Two bodies of one event, reduced to the recorded fields, and the paths of fields that are new."""

    recorded: Any
    redecided: Any
    new: tuple[str, ...] = ()

    @property
    def is_same(self) -> bool:
        """Whether the two are equal."""
        return _encoder.encode(self.recorded) == _encoder.encode(self.redecided)


class BodyComparer:
    """Compares bodies of one writer, in the order in which they were recorded, and notes which fields it wrote."""

    def __init__(self) -> None:
        self._recorded_fields: dict[Kind, set[str]] = {}
        self._inspected: dict[Kind, int] = {}

    def copy(self) -> "BodyComparer":
        """Return another comparer with the same notes."""
        other = BodyComparer()
        other._recorded_fields = {kind: set(fields) for kind, fields in self._recorded_fields.items()}
        other._inspected = dict(self._inspected)
        return other

    def note_identical(self, was: Recorded) -> None:
        """Note a body that was made again with the same bytes."""
        kind = was.envelope.topic, was.envelope.version, was.envelope.build
        inspected = self._inspected.get(kind, 0)
        if inspected < _BODIES_INSPECTED:
            self._inspected[kind] = inspected + 1
            _note_fields(was.message.event, "", self._recorded_fields.setdefault(kind, set()))

    def compare(self, was: Recorded, now: NewEvent) -> BodyComparison:
        """Compare a recorded body with the one that is decided today."""
        if was.envelope.topic != now.topic:
            return BodyComparison(msgspec.to_builtins(was.message.event), _decoder.decode(now.data))
        kind = was.envelope.topic, was.envelope.version, was.envelope.build
        try:
            document = _decoder.decode(upcast_body(was.envelope.topic, was.stored.data, was.envelope.version))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            # The event itself was decoded: a decoder skips fields that its type does not know, even malformed ones.
            return BodyComparison(was.stored.data.decode(errors="replace"), _decoder.decode(now.data))
        try:
            event: Event = decode_event(now.topic, now.data, CATALOGUE[now.topic].version)
        except VocabularyError:
            # Today's body cannot be decoded, so that no recorded body can equal it.
            return BodyComparison(document, _decoder.decode(now.data))
        present: set[str] = set()
        absent: set[str] = set()
        recorded = _projected(document, was.message.event, "", present, set(), is_recorded=True)
        redecided = _projected(document, event, "", set(), absent)
        recorded_fields = self._recorded_fields.setdefault(kind, set())
        missing = absent & recorded_fields
        if missing:
            redecided = _projected(document, event, "", set(), set(), kept_paths=missing)
        recorded_fields |= present
        return BodyComparison(recorded, redecided, tuple(sorted(absent - missing)))


def _note_fields(value: Any, path: str, fields: set[str]) -> None:
    """Add the paths of all fields that a value's body has; paths are those of :func:`_projected`."""
    if type(value) in _WITHOUT_FIELDS:
        return
    if isinstance(value, msgspec.Struct):
        if value.__struct_config__.array_like:
            return
        for field, name in zip(value.__struct_fields__, value.__struct_encode_fields__, strict=True):
            field_path = f"{path}.{name}" if path else name
            fields.add(field_path)
            _note_fields(getattr(value, field), field_path, fields)
    elif isinstance(value, Mapping | list | tuple):
        for inner in value.values() if isinstance(value, Mapping) else value:
            _note_fields(inner, f"{path}[]", fields)


def text_of(body: Any) -> str:
    """Return a body as the JSON text that a difference shows."""
    return msgspec.json.encode(body).decode()


def _projected(
    document: Any,
    value: Any,
    path: str,
    present: set[str],
    absent: set[str],
    *,
    kept_paths: set[str] | frozenset[str] = frozenset(),
    is_recorded: bool = False,
) -> Any:
    """Return a value as plain JSON types, without the fields that the recorded document lacks.

    Args:
        document: What was recorded at this path; ``_NOT_RECORDED``: nothing comparable, so that the whole value counts.
        value: The decoded value.
        path: The path of the value, with ``[]`` for indexes of lists and keys of maps.
        present: Collects the paths of fields that the document has.
        absent: Collects the paths of those that it lacks.
        kept_paths: Paths of fields that count though the document lacks them.
        is_recorded: Whether the value was decoded from this document; then fields that its type does not know are kept.
    """
    if isinstance(value, msgspec.Struct) and not value.__struct_config__.array_like:
        return _projected_struct(document, value, path, present, absent, kept_paths, is_recorded)
    more: Any = {"kept_paths": kept_paths, "is_recorded": is_recorded}
    if isinstance(value, Mapping):
        entries = document if isinstance(document, dict) else {}
        keyed = {str(msgspec.to_builtins(key, str_keys=True)): inner for key, inner in value.items()}
        return {
            key: _projected(entries.get(key, _NOT_RECORDED), inner, f"{path}[]", present, absent, **more)
            for key, inner in keyed.items()
        }
    if isinstance(value, list | tuple):
        recorded_items = (
            document if isinstance(document, list) and len(document) == len(value) else [_NOT_RECORDED] * len(value)
        )
        return [
            _projected(recorded, inner, f"{path}[]", present, absent, **more)
            for recorded, inner in zip(recorded_items, value, strict=True)
        ]
    return msgspec.to_builtins(value)


def _projected_struct(
    document: Any,
    value: msgspec.Struct,
    path: str,
    present: set[str],
    absent: set[str],
    kept_paths: set[str] | frozenset[str],
    is_recorded: bool,
) -> dict[str, Any]:
    config = value.__struct_config__
    is_whole = not isinstance(document, dict)
    entries: dict[str, Any] = {} if is_whole else document
    found: dict[str, Any] = {}
    if config.tag_field is not None and (config.tag_field in entries or is_whole or not is_recorded):
        found[config.tag_field] = config.tag
    for field, name in zip(value.__struct_fields__, value.__struct_encode_fields__, strict=True):
        field_path = f"{path}.{name}" if path else name
        if is_whole or name in entries or config.omit_defaults or field_path in kept_paths:
            # A writer that omits defaults left out a field that has its default: the field counts as recorded.
            present.add(field_path)
            inner = entries.get(name, _NOT_RECORDED)
            found[name] = _projected(
                inner,
                getattr(value, field),
                field_path,
                present,
                absent,
                kept_paths=kept_paths,
                is_recorded=is_recorded,
            )
        else:
            absent.add(field_path)
    if is_recorded:
        known = {*found, *value.__struct_encode_fields__}
        found |= {name: inner for name, inner in entries.items() if name not in known}
    return found
