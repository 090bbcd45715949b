"""Strict reading of external input: bodies, lines, files and questions. Pure.

An unknown field is refused, and the nearest known one is named: if it were ignored, a misspelt field would silently be
left out of a decision. Also refused are a missing field, a key that occurs twice (readers disagree on which one
counts), a value of another type and a number out of range. The log's own events are read tolerantly instead
(``schemas.event``), since an older reader must survive a newer writer.

Structs of the vocabulary are read here as strictly as those with ``forbid_unknown_fields``, at every depth: a walk over
the plain values finds the fields that msgspec ignores. msgspec's error becomes a message that says where the fault is
and what to do.
"""

import json
import re
from codecs import BOM_UTF8
from collections.abc import Collection, Iterable
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

from schemas.intake.error_messages import explain_error, inspected_type, types_at, union_members
from schemas.intake.nearest_name import nearest_name
from schemas.intake.wrong_entries import path_of_number_out_of_range, path_with_keys

S = TypeVar("S", bound=msgspec.Struct)

_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(.*)`", re.DOTALL)
_GZIP = b"\x1f\x8b"
_OUT_OF_RANGE = re.compile(r"(?:Number|Integer value) out of range")
_MAX_NAMES_LISTED = 16
"""How many names a message lists at most."""

_MAX_NAME_CHARACTERS = 60
"""How many characters of a name from outside a message repeats at most."""

_MAX_PATH_CHARACTERS = 300
"""How many characters the path of a wrong field has at most: names in it may come from outside."""


class BadInput(ValueError):
    """External input cannot be accepted; the message says what is wrong, where, and what to do.

    ``code`` is stable; ``field`` is the path of the wrong field, cut, empty if the whole input is wrong.
    """

    def __init__(self, code: str, field: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.field = field if len(field) <= _MAX_PATH_CHARACTERS else f"{field[:_MAX_PATH_CHARACTERS]}..."


def read(raw: bytes, kind: type[S], what: str = "the body", *, open_to: Collection[type] = ()) -> S:
    """Read one JSON value as ``kind``; ``what`` names the whole in messages, ``open_to`` structs that take any field.

    Raises:
        BadInput: ``not_utf8``, ``lone_surrogate``, ``too_deep``, ``not_json``, ``key_twice``, or as
        :func:`validation_error` says.
    """
    found, value = _decoded(raw, kind, what)
    _refuse_unknown(value, (inspected_type(kind),), "", open_to)
    typed: S = found
    return typed


def read_plain(raw: bytes, what: str = "the body") -> Any:
    """Read one JSON value as plain dicts, lists and scalars; raises BadInput as :func:`read` does."""
    found, _ = _decoded(raw, Any, what)
    return found


def convert(value: Any, kind: type[S], what: str = "the body", *, open_to: Collection[type] = ()) -> S:
    """Return plain values as ``kind``; raises BadInput as :func:`validation_error` says."""
    try:
        found = msgspec.convert(value, kind)
    except msgspec.ValidationError as wrong:
        raise validation_error(kind, wrong, what, value) from wrong
    _refuse_unknown(value, (inspected_type(kind),), "", open_to)
    return found


def _decoded(raw: bytes, kind: Any, what: str) -> tuple[Any, Any]:
    try:
        # Decoded first, to check all bytes: msgspec does not check those of values that it skips.
        text = raw.decode()
        found = msgspec.json.decode(text, type=kind)
        value = json.loads(text, object_pairs_hook=_unique_keys)
    except BadInput:
        raise
    except msgspec.ValidationError as wrong:
        raise _wrong_value(kind, wrong, what, text) from wrong
    except UnicodeDecodeError as wrong:
        detail = f"{what} is not JSON: byte {wrong.start + 1} is not UTF-8: convert it"
        if raw.startswith(_GZIP):
            detail = f"{what} is compressed (gzip), which is not read here: send it as it is"
        raise BadInput("not_utf8", "", detail) from wrong
    except RecursionError as wrong:
        raise BadInput("too_deep", "", f"{what} is nested too deeply: send what the fields take") from wrong
    except msgspec.DecodeError as wrong:
        raise _why_not_json(raw, wrong, what) from wrong
    except ValueError as wrong:  # Python reads no integer of thousands of digits; msgspec skips it in unknown fields
        path = path_of_number_out_of_range(text)
        raise BadInput("bad_value", path, f"{path or what}: Number out of range: write a smaller one") from wrong
    return found, value


def _wrong_value(kind: Any, wrong: msgspec.ValidationError, what: str, text: str) -> BadInput:
    """Return the error of a value in a JSON text; it names the entry of a mapping, which msgspec leaves out."""
    out_of_range = _OUT_OF_RANGE.match(str(wrong))
    if out_of_range and (path := path_of_number_out_of_range(text)):
        return BadInput("bad_value", path, f"{path}: {out_of_range[0]}: write a smaller one")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return validation_error(kind, wrong, what)
    return validation_error(kind, wrong, what, value)


def _refuse_unknown(value: Any, kinds: tuple[inspect.Type, ...], path: str, open_to: Collection[type]) -> None:
    """Raise BadInput for the first unknown field of a value that has one of these types."""
    found = [member for kind in kinds for member in union_members(kind)]
    if isinstance(value, list):
        items = tuple(each.item_type for each in found if isinstance(each, inspect.VarTupleType | inspect.ListType))
        if any(map(_holds_fields, items)):
            for index, item in enumerate(value):
                _refuse_unknown(item, items, f"{path}[{index}]", open_to)
        return
    if not isinstance(value, dict):
        return
    structs = [each for each in found if isinstance(each, inspect.StructType)]
    values = tuple(each.value_type for each in found if isinstance(each, inspect.DictType))
    fields: dict[str, list[inspect.Type]] = {}
    for field in (field for struct in structs for field in struct.fields):
        fields.setdefault(field.encode_name, []).append(field.type)
    tags = {struct.tag_field for struct in structs}
    takes_any = bool(values) or any(struct.cls in open_to for struct in structs)
    for key, inner in value.items():
        if structs and key not in fields and key not in tags and not takes_any:
            raise _unknown(key, path, fields)
        _refuse_unknown(inner, (*fields.get(key, ()), *values), f"{path}.{key}" if path else key, open_to)


def _holds_fields(kind: inspect.Type) -> bool:
    """Whether values of a type can have fields: a list of a hundred thousand numbers needs no walk over its items."""
    return any(
        isinstance(each, inspect.StructType | inspect.DictType | inspect.VarTupleType | inspect.ListType)
        for each in union_members(kind)
    )


def _unknown(name: str, path: str, known: Iterable[str]) -> BadInput:
    prefix, field = (f"{path}: ", f"{path}.{name}") if path else ("", name)
    return BadInput(
        "unknown_field", field, f"{prefix}there is no field {quoted_name(name)}: {did_you_mean(name, known)}"
    )


def validation_error(kind: Any, wrong: msgspec.ValidationError, what: str = "the body", value: Any = None) -> BadInput:
    """Return the error of a value that is not of ``kind``: ``unknown_field``, ``missing_field`` or ``bad_value``.

    ``value`` is the whole plain value, so that the entry of a mapping can be named; None if it is not at hand.
    """
    text, written_path = explain_error(kind, str(wrong))
    path = path_with_keys(written_path, value, lambda other: _error_of(other, kind) == str(wrong))
    if unknown := _UNKNOWN.fullmatch(text):
        # In a union, only the structs without such a field can have been meant.
        return _unknown(unknown[1], path, _fields_at(kind, written_path, without=unknown[1]))
    if missing := _MISSING.fullmatch(text):
        name = missing[1]
        field = f"{path}.{name}" if path else name
        needed = _needed_at(kind, written_path, name)
        where = path or what
        return BadInput("missing_field", field, f"{field} is missing: {where} needs {' and '.join(needed)}")
    return BadInput("bad_value", path, f"{path}: {text}" if path else text)


def _error_of(value: Any, kind: Any) -> str:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError as wrong:
        return str(wrong)
    return ""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a hint: the known name nearest to an unknown one, or all known names if none is near."""
    names, name = list(known), name[:_MAX_PATH_CHARACTERS]
    by_letters = {_letters(each): each for each in names}
    if near := nearest_name(_letters(name), by_letters, cutoff=0.7):
        return f"did you mean {by_letters[near]!r}?"
    more = ", ..." if len(names) > _MAX_NAMES_LISTED else ""
    return f"there are {', '.join(names[:_MAX_NAMES_LISTED])}{more}" if names else "there are none"


def quoted_name(name: str) -> str:
    """Return a name from outside as a message may repeat it: quoted, printable, and cut."""
    return ascii(name if len(name) <= _MAX_NAME_CHARACTERS else f"{name[:_MAX_NAME_CHARACTERS]}...")


def _letters(name: str) -> str:
    """Return a name as it is compared: in lower case, without hyphens, underscores and the like."""
    return re.sub(r"[^0-9a-z]", "", name.casefold()) or name


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise BadInput(
            "key_twice", twice, f"the key {quoted_name(twice)} stands twice in one mapping: keep one of them"
        )
    return found


def _why_not_json(raw: bytes, wrong: msgspec.DecodeError, what: str) -> BadInput:
    if b"\\ud" in raw.lower():
        try:
            # msgspec calls half of a surrogate pair a truncated input; the standard library reads it.
            json.dumps(json.loads(raw), ensure_ascii=False).encode()
        except UnicodeEncodeError:
            detail = "a lone surrogate (\\ud800 to \\udfff) is no Unicode text: repair or drop it"
            return BadInput("lone_surrogate", "", detail)
        except (ValueError, RecursionError):
            pass
    if raw.startswith(BOM_UTF8):
        return BadInput("not_json", "", f"{what} begins with a byte order mark, which JSON does not have: leave it out")
    return BadInput("not_json", "", f"{what} is not JSON: {wrong}")


def _fields_at(kind: Any, path: str, without: str) -> list[str]:
    names: dict[str, None] = {}
    for struct in _structs_at(kind, path):
        fields = [field.encode_name for field in struct.fields]
        if without not in fields:
            names.update(dict.fromkeys(fields))
    return list(names)


def _needed_at(kind: Any, path: str, missing: str) -> list[str]:
    for struct in _structs_at(kind, path):
        needed = [field.encode_name for field in struct.fields if field.required]
        if missing in needed:
            return needed
    return [missing]


def _structs_at(kind: Any, path: str) -> list[inspect.StructType]:
    found = types_at(inspected_type(kind), path, None)
    return [member for one in found for member in union_members(one) if isinstance(member, inspect.StructType)]
