"""Reading strictly what comes from outside: every message says what, where, and what to do."""

import contextlib
import json
import time
from typing import Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.intake.strict import BadInput, convert, did_you_mean, quoted_name, read, read_plain
from tests.each import each


class Inner(msgspec.Struct, forbid_unknown_fields=True):
    """A struct within."""

    word: Literal["one", "two"]
    number: float = 0.0


class Outer(msgspec.Struct, forbid_unknown_fields=True):
    """A body."""

    loop_id: str
    inner: Inner | None = None
    several: tuple[Inner | str, ...] = ()
    named: dict[str, Inner] = {}


GOOD = {"word": "one"}


def complaint(body: Any) -> tuple[str, str, str]:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    with pytest.raises(BadInput) as wrong:
        read(raw, Outer)
    return wrong.value.code, wrong.value.field, str(wrong.value)


@each(
    ("body", "code", "field", "message"),
    [
        ({}, "missing_field", "loop_id", "loop_id is missing: the body needs loop_id"),
        ({"loop_id": "x", "inner": {}}, "missing_field", "inner.word", "inner.word is missing: inner needs word"),
        ({"lop_id": "x"}, "unknown_field", "lop_id", "there is no field 'lop_id': did you mean 'loop_id'?"),
        ({"LOOP-ID": "x"}, "unknown_field", "LOOP-ID", "there is no field 'LOOP-ID': did you mean 'loop_id'?"),
        (
            {"loop_id": "x", "zzz": 1},
            "unknown_field",
            "zzz",
            "there is no field 'zzz': there are loop_id, inner, several, named",
        ),
        (
            {"loop_id": "x", "inner": {**GOOD, "nmber": 1}},
            "unknown_field",
            "inner.nmber",
            "inner: there is no field 'nmber': did you mean 'number'?",
        ),
        (
            {"loop_id": "x", "several": ["a", {**GOOD, "wort": 1}]},
            "unknown_field",
            "several[1].wort",
            "several[1]: there is no field 'wort': did you mean 'word'?",
        ),
        (
            {"loop_id": "x", "named": {"a": {**GOOD, "wort": 1}}},
            "unknown_field",
            "named.a.wort",
            "named.a: there is no field 'wort': did you mean 'word'?",
        ),
        ({"loop_id": 5}, "bad_value", "loop_id", "loop_id: Expected `str`, got `int`"),
        (
            {"loop_id": "x", "inner": {"word": "One"}},
            "bad_value",
            "inner.word",
            "inner.word: Invalid enum value 'One': there are one, two",
        ),
        ([], "bad_value", "", "Expected `object`, got `array`"),
        (
            b'{"loop_id": "x", "inner": {"word": "one", "number": 1e999}}',
            "bad_value",
            "inner.number",
            "inner.number: Number out of range",
        ),
        (b'{"loop_id": "x", "inner": {"word": "one", "number": NaN}}', "not_json", "", "the body is not JSON: "),
        (b'{"loop_id": "x", "loop_id": "y"}', "key_twice", "loop_id", "the key 'loop_id' stands twice in one mapping"),
        (b"\xff", "not_utf8", "", "the body is not JSON: byte 1 is not UTF-8"),
        (b'{"loop_id": "\\ud800"}', "lone_surrogate", "", "a lone surrogate"),
        (b"{", "not_json", "", "the body is not JSON: "),
        (b"", "not_json", "", "the body is not JSON: "),
    ],
    named=str,
)
def test_a_body_is_refused_with_where_it_is_wrong_and_what_to_do(
    body: Any, code: str, field: str, message: str
) -> None:
    found = complaint(body)
    assert found[:2] == (code, field)
    assert found[2].startswith(message)


def test_nesting_without_end_is_refused_wherever_it_stands() -> None:
    with pytest.raises(BadInput) as wrong:
        read_plain(b"[" * 100_000 + b"]" * 100_000)
    assert wrong.value.code == "too_deep"


def test_plain_values_are_judged_as_json_is() -> None:
    assert convert({"loop_id": "x"}, Outer) == read(b'{"loop_id": "x"}', Outer)
    with pytest.raises(BadInput, match="did you mean 'loop_id'"):
        convert({"loopid": "x"}, Outer)


@each(("name", "meant"), [("limt", "limit"), ("LIMIT", "limit"), ("work-load", "work_load"), ("workLoad", "work_load")])
def test_the_nearest_name_is_found_whatever_its_case_and_what_joins_its_words(name: str, meant: str) -> None:
    assert did_you_mean(name, ["limit", "work_load", "agent"]) == f"did you mean {meant!r}?"


@each(
    "body",
    [
        {"loop_id": "a", "x" * 900_000: 1},
        {"loop_id": "a", "inner": {"word": "x" * 900_000}},
        {"loop_id": "a", "inner": {"word": "one", "x" * 900_000: 1}},
        {"loop_id": "a", "named": {"x" * 900_000: {"word": "two", "y": 1}}},
        b'{"%s": 1, "%s": 2}' % (b"x" * 400_000, b"x" * 400_000),
    ],
    named=["field", "value", "field within", "name", "twice"],
)
def test_an_overlong_name_is_neither_compared_nor_repeated_whole(body: Any) -> None:
    began = time.process_time()
    _, field, message = complaint(body)
    assert len(field) < 1_000
    assert len(message) < 2_000
    assert time.process_time() - began < 0.3  # some 10 ms; .7 s where it was compared with the known names


def test_a_name_from_outside_is_repeated_printable_and_cut() -> None:
    assert quoted_name("a\nb\u202e") == "'a\\nb\\u202e'"
    assert len(quoted_name("x" * 10_000)) < 80


bodies = st.dictionaries(st.text(max_size=8), st.none() | st.text(max_size=8)).map(
    lambda body: json.dumps(body).encode()
)


@given(st.binary(max_size=64) | bodies)
def test_nothing_from_outside_ends_in_another_error(raw: bytes) -> None:
    with contextlib.suppress(BadInput):
        read(raw, Outer)


@each("digits", ["1" * 5_000, f"-{'9' * 20_000}", f"[{{}}, {'2' * 5_000}]"])
def test_a_number_of_thousands_of_digits_is_refused_even_in_a_field_that_is_passed_over(digits: str) -> None:
    class Open(msgspec.Struct):
        text: str

    raw = f'{{"text": "x", "more": {digits}}}'.encode()
    for open_to in ((), (Open,)):
        with pytest.raises(BadInput, match=r"more.*: Number out of range: write a smaller one"):
            read(raw, Open, open_to=open_to)
