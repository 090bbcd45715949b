"""Every text in the vocabulary is either taken out on export, or known to be nobody's words."""

import re
from collections.abc import Iterator

import msgspec
from msgspec import inspect

from schemas.catalogue import CATALOGUE
from schemas.entry import Entry
from schemas.wording.personal import CALLER_TEXT_FIELDS
from tests.each import each

HARMLESS = {
    "identifiers": "about agent alert allowance allowed best citizen concept entity episode exchange family id key_id "
    "loop_id motif nearest negative "
    "new_loop_id of_exchange positive precedent reply_to request rerun_of resting seed session sessions set_by "
    "completion stream_to swapped_in swapped_out",
    "hashes": "fingerprint head prompts settings_hash",
    "codes and names of ours": "action actor adapted answer_schema backend conversation_topic decided detail "
    "error event failed_topic "
    "figures finish_reason kept_as layer layers lost offsets parameter part partitions parts pattern profile reason "
    "recogniser "
    "reasons regulated rerun_reason rerun_reason_detail resolved_by scores sign signal similar_topic skills source "
    "tiebreaker_outcome timestamp view violations weights",
    "names that operators and callers give to what they set up": "bias_tags imports model models modes name "
    "orchestrator_persona receiver reflection_persona reflection_status repeated_tags repetition_counts specialist "
    "whose",
    "patterns and settings, which are to be shown": "settings signatures",
    "the body of an alert, whose texts are these": "body",
}
SHOWN_WHOLE = frozenset({"signatures", "settings", "body"})
NAMES = frozenset(name for names in HARMLESS.values() for name in names.split())
CODES = frozenset(HARMLESS["codes and names of ours"].split())


TEXTLESS = (
    inspect.BoolType, inspect.EnumType, inspect.FloatType, inspect.IntType, inspect.LiteralType, inspect.NoneType,
)  # fmt: skip


def texts(kind: inspect.Type, path: str, name: str) -> Iterator[tuple[str, str]]:
    """Yield (path, name of the field) of every text within a type that is not marked as words."""
    if isinstance(kind, inspect.Metadata):
        if not {"x-personal", "x-echo"} & (kind.extra_json_schema or {}).keys():
            yield from texts(kind.type, path, name)
    elif isinstance(kind, inspect.StructType):
        for field in kind.fields:
            inner = f"{path}.{field.encode_name}"
            if field.encode_name in SHOWN_WHOLE:
                yield inner, field.encode_name
            else:
                yield from texts(field.type, inner, field.encode_name)
    elif isinstance(kind, inspect.VarTupleType | inspect.ListType):
        yield from texts(kind.item_type, path, name)
    elif isinstance(kind, inspect.DictType):
        yield from texts(kind.key_type, path, name)
        yield from texts(kind.value_type, path, name)
    elif isinstance(kind, inspect.UnionType):
        for member in kind.types:
            yield from texts(member, path, name)
    elif isinstance(kind, inspect.TupleType):
        for member in kind.item_types:
            yield from texts(member, path, name)
    elif not isinstance(kind, TEXTLESS):
        yield path, name


@each("entry", CATALOGUE.values(), named=lambda entry: entry.topic)
def test_every_text_is_redacted_or_known_to_be_harmless(entry: Entry) -> None:
    unknown = [
        path for path, name in texts(inspect.type_info(entry.event), "", "") if name not in NAMES | CALLER_TEXT_FIELDS
    ]
    assert unknown == [], "declare them Personal or Echo, or name them in personal.CHOSEN, or in HARMLESS here"


def test_no_field_is_both() -> None:
    assert not NAMES & CALLER_TEXT_FIELDS


def test_no_name_is_listed_that_no_event_has() -> None:
    known = {name for entry in CATALOGUE.values() for _, name in texts(inspect.type_info(entry.event), "", "")}
    assert known >= NAMES | CALLER_TEXT_FIELDS


PROSE = re.compile(r"[a-z]+,? [a-z]+ [a-z]+")
SET_BY_SETTINGS = frozenset({"sign", "weights"})
"""Codes that are recorded as settings first: a decision made again has them from there, however they are reworded."""


def codes(value: object, name: str) -> Iterator[tuple[str, str]]:
    """Yield (name of the field, text) of what a body holds under the names of codes of ours."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from codes(inner, name if name == "figures" else key)
    elif isinstance(value, list):
        for inner in value:
            yield from codes(inner, name)
    elif isinstance(value, str) and name in CODES - SHOWN_WHOLE - SET_BY_SETTINGS:
        yield name, value


@each("entry", CATALOGUE.values(), named=lambda entry: entry.topic)
def test_what_is_ours_in_an_event_is_a_code_and_no_prose(entry: Entry) -> None:
    """Prose is reworded, and what was decided with it would come out otherwise: it is put to codes where shown."""
    assert [told for told in codes(msgspec.to_builtins(entry.sample), "") if PROSE.search(told[1])] == []
