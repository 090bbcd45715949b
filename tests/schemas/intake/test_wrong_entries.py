"""The error of a value in a mapping names its key, and the error of a number that is too large names its place."""

import json
import time
from typing import Any

import msgspec
import pytest

from schemas.intake.strict import BadInput, convert, read, read_plain
from tests.each import each


class Body(msgspec.Struct):
    """A body with mappings."""

    settings: dict[str, float] = {}
    nested: dict[str, list[dict[str, int]]] = {}


def _error_of(raw: str) -> BadInput:
    with pytest.raises(BadInput) as wrong:
        read(raw.encode(), Body)
    return wrong.value


@each(
    ("raw", "field"),
    [
        ('{"settings": {"a": 1, "b": "x"}}', "settings.b"),
        ('{"settings": {"router.act": null, "b": 1}}', "settings['router.act']"),
        ('{"settings": {"a": 1, "b": 1e999}}', "settings.b"),
        ('{"settings": {"\\u001b": true}}', r"settings['\x1b']"),
        ('{"nested": {"a": [{"k": 1}], "b": [{"k": 1}, {"l": 1, "m": 1.5}]}}', "nested.b[1].m"),
        ('{"nested": {"a": [{"k": %s}]}}' % ("9" * 5_000), "nested.a[0].k"),
    ],
)
def test_the_entry_of_a_mapping_is_named(raw: str, field: str) -> None:
    wrong = _error_of(raw)
    assert (wrong.code, wrong.field) == ("bad_value", field)
    assert str(wrong).startswith(f"{field}: ")


def test_a_number_that_is_too_large_is_named_in_a_plain_value() -> None:
    with pytest.raises(BadInput) as wrong:
        read_plain(b'{"model": "m", "messages": [], "temperature": 1e999}')
    assert (wrong.value.code, wrong.value.field) == ("bad_value", "temperature")
    assert "out of range" in str(wrong.value)


def test_plain_values_name_the_entry_too() -> None:
    with pytest.raises(BadInput, match=r"settings\.b: Expected `float`, got `str`"):
        convert({"settings": {"a": 1.0, "b": "x"}}, Body)


def test_a_hundred_thousand_entries_are_not_tried_one_by_one() -> None:
    settings: dict[str, Any] = {f"key{number}": 0.5 for number in range(100_000)} | {"last": "x"}
    raw = json.dumps({"settings": settings})
    began = time.process_time()
    assert _error_of(raw).field == "settings.last"
    assert time.process_time() - began < 3


@each(
    ("raw", "message"),
    [
        (b"\x1f\x8b\x08\x00", "the body is compressed (gzip), which is not read here: send it as it is"),
        (b"\xef\xbb\xbf{}", "the body begins with a byte order mark, which JSON does not have: leave it out"),
    ],
)
def test_a_coding_that_is_not_read_is_named(raw: bytes, message: str) -> None:
    with pytest.raises(BadInput) as wrong:
        read(raw, Body)
    assert str(wrong.value) == message
