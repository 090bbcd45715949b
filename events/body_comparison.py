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

from events.codec import Recorded
from events.decision import NewEvent
from schemas.catalogue import CATALOGUE, decode_event, upcast_body
from schemas.errors import VocabularyError
from schemas.event import Event

_WALKED = 25
"""Bodies of a subject and build whose fields are noted where they come out to the byte; later ones have the same."""

_NOTHING: Any = object()
_decoder = msgspec.json.Decoder()
_encoder = msgspec.json.Encoder(order="deterministic")

Kind = tuple[str, int, str]
"""A public subject, the version of its bodies, and the build that wrote them."""


class BodyComparison(msgspec.Struct, frozen=True):
    """What two bodies of one event say: the recorded fields of each, and the paths of those that are new."""

    recorded: Any
    redecided: Any
    new: tuple[str, ...] = ()

    @property
    def is_same(self) -> bool:
        """Whether they say the same."""
        return _encoder.encode(self.recorded) == _encoder.encode(self.redecided)


class BodyComparer:
    """Compares bodies of one writer, in the order in which they were recorded, and notes which fields it wrote."""

    def __init__(self) -> None:
        self._written: dict[Kind, set[str]] = {}
        self._walked: dict[Kind, int] = {}

    def copy(self) -> "BodyComparer":
        """Return another one that knows the same."""
        other = BodyComparer()
        other._written = {kind: set(fields) for kind, fields in self._written.items()}
        other._walked = dict(self._walked)
        return other

    def note_identical(self, was: Recorded) -> None:
        """Note a body that was made again with the same bytes."""
        kind = was.envelope.topic, was.envelope.version, was.envelope.build
        walked = self._walked.get(kind, 0)
        if walked < _WALKED:
            self._walked[kind] = walked + 1
            written = self._written.setdefault(kind, set())
            _projected(_NOTHING, was.message.event, "", written, set())

    def compare(self, was: Recorded, now: NewEvent) -> BodyComparison:
        """Return what a recorded body and the one that is decided today say."""
        if was.envelope.topic != now.topic:
            return BodyComparison(msgspec.to_builtins(was.message.event), _decoder.decode(now.data))
        kind = was.envelope.topic, was.envelope.version, was.envelope.build
        try:
            document = _decoder.decode(upcast_body(was.envelope.topic, was.stored.data, was.envelope.version))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            # Its type was decoded all the same: what a type does not know is passed over, whatever stands there.
            return BodyComparison(was.stored.data.decode(errors="replace"), _decoder.decode(now.data))
        try:
            event: Event = decode_event(now.topic, now.data, CATALOGUE[now.topic].version)
        except VocabularyError:
            # It cannot even be read again, so that no recorded body can be its equal.
            return BodyComparison(document, _decoder.decode(now.data))
        had: set[str] = set()
        lacking: set[str] = set()
        recorded = _projected(document, was.message.event, "", had, set(), of_record=True)
        redecided = _projected(document, event, "", set(), lacking)
        written = self._written.setdefault(kind, set())
        missing = lacking & written
        if missing:
            redecided = _projected(document, event, "", set(), set(), kept=missing)
        written |= had
        return BodyComparison(recorded, redecided, tuple(sorted(lacking - missing)))


def text_of(said: Any) -> str:
    """Return a body for a difference."""
    return msgspec.json.encode(said).decode()


def _projected(
    document: Any,
    value: Any,
    path: str,
    had: set[str],
    lacking: set[str],
    *,
    kept: set[str] | frozenset[str] = frozenset(),
    of_record: bool = False,
) -> Any:
    """Return a value as JSON would hold it, without the fields that a document lacks in its place.

    Args:
        document: What was recorded in this place; ``_NOTHING``: something else, so that the whole value counts.
        value: The decoded value.
        path: The path of the place, without the places in lists and the keys of maps.
        had: Takes the paths of fields that the document has.
        lacking: Takes the paths of those that it lacks.
        kept: Paths of fields that count though the document lacks them.
        of_record: Whether the value was decoded from this document: what it does not know of that is taken over.
    """
    if isinstance(value, msgspec.Struct) and not value.__struct_config__.array_like:
        return _projected_struct(document, value, path, had, lacking, kept, of_record)
    more: Any = {"kept": kept, "of_record": of_record}
    if isinstance(value, Mapping):
        entries = document if isinstance(document, dict) else {}
        keyed = {str(msgspec.to_builtins(key, str_keys=True)): inner for key, inner in value.items()}
        return {
            key: _projected(entries.get(key, _NOTHING), inner, f"{path}[]", had, lacking, **more)
            for key, inner in keyed.items()
        }
    if isinstance(value, list | tuple):
        places = document if isinstance(document, list) and len(document) == len(value) else [_NOTHING] * len(value)
        return [
            _projected(recorded, inner, f"{path}[]", had, lacking, **more)
            for recorded, inner in zip(places, value, strict=True)
        ]
    return msgspec.to_builtins(value)


def _projected_struct(
    document: Any,
    value: msgspec.Struct,
    path: str,
    had: set[str],
    lacking: set[str],
    kept: set[str] | frozenset[str],
    of_record: bool,
) -> dict[str, Any]:
    config = value.__struct_config__
    is_whole = not isinstance(document, dict)
    entries: dict[str, Any] = {} if is_whole else document
    found: dict[str, Any] = {}
    if config.tag_field is not None and (config.tag_field in entries or is_whole or not of_record):
        found[config.tag_field] = config.tag
    for field, name in zip(value.__struct_fields__, value.__struct_encode_fields__, strict=True):
        place = f"{path}.{name}" if path else name
        if is_whole or name in entries or config.omit_defaults or place in kept:
            # Where a writer omits defaults, a field that is not there says that it has its default.
            had.add(place)
            inner = entries.get(name, _NOTHING)
            found[name] = _projected(inner, getattr(value, field), place, had, lacking, kept=kept, of_record=of_record)
        else:
            lacking.add(place)
    if of_record:
        found |= {name: inner for name, inner in entries.items() if name not in found and _is_unknown(value, name)}
    return found


def _is_unknown(value: msgspec.Struct, name: str) -> bool:
    return name not in value.__struct_encode_fields__
