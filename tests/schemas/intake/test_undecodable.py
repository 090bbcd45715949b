"""Whatever bytes arrive under a subject, decoding gives that event or one of the vocabulary's errors."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from schemas.catalogue import CATALOGUE, decode_event
from schemas.errors import UndecodableEvent, VocabularyError
from schemas.event import encode_event
from tests.each import each

topics = st.sampled_from(sorted(CATALOGUE))
hostile_scalars = st.sampled_from(
    [
        None,
        True,
        -1,
        10**30,
        -(10**400),
        1e308,
        "\x00",
        "\ud800",
        "\udfff\ud800",
        "a" * 10_000,
        "9" * 5_000,
        [],
        {},
        [[[]]],
    ]
)
json_values = st.recursive(
    hostile_scalars | st.integers() | st.floats() | st.text(),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(), children, max_size=3),
    max_leaves=8,
)


def decode(topic: str, body: bytes) -> None:
    with suppress(VocabularyError):
        assert isinstance(decode_event(topic, body), CATALOGUE[topic].event)


@given(topics, st.binary())
@example("forged_id.input.received", b"\x00")
@example("forged_id.input.received", b'{"topic":"forged_id.input.received","text":"\xff\xfe"}')
@example("forged_id.input.received", b"\xef\xbb\xbf{}")
def test_random_bytes(topic: str, body: bytes) -> None:
    decode(topic, body)


@given(topics, st.data())
def test_a_sample_cut_or_altered_at_any_byte(topic: str, data: st.DataObject) -> None:
    body = encode_event(CATALOGUE[topic].sample)
    place = data.draw(st.integers(0, len(body) - 1))
    decode(topic, body[:place])
    decode(topic, body[:place] + data.draw(st.binary(max_size=4)) + body[place + 1 :])


@given(topics, st.data())
def test_a_field_of_any_other_kind(topic: str, data: st.DataObject) -> None:
    document: dict[str, Any] = json.loads(encode_event(CATALOGUE[topic].sample))
    document[data.draw(st.sampled_from(sorted(document)))] = data.draw(json_values)
    decode(topic, json.dumps(document).encode())


@each("topic", sorted(CATALOGUE))
@each("opening", ["[", '{"a":'])
def test_nesting_without_end(topic: str, opening: str) -> None:
    endless = opening * 20_000  # twenty times as deep as anything is read, and a megabyte less to copy for each field
    fields = "".join(f'"{name}":{endless},' for name in CATALOGUE[topic].event.__struct_fields__)
    for body in (endless, f'{{"topic":"{topic}",{fields}', f'{{"unknown":{endless}'):
        with pytest.raises(UndecodableEvent):
            decode_event(topic, body.encode())


@each("topic", sorted(CATALOGUE))
@each("body", [b"", b"null", b"[]", b'"x"', b"7", b'{"topic":null}', b'{"topic":"forged_id.other"}'])
def test_json_that_is_another_thing(topic: str, body: bytes) -> None:
    with pytest.raises(UndecodableEvent, match=topic.replace(".", r"\.")):
        decode_event(topic, body)
