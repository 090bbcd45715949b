from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.envelope import MESSAGE_ID, Envelope, decode_headers, encode_headers
from schemas.errors import UndecodableEvent
from schemas.identity import event_id
from tests.each import each

any_text = st.text() | st.sampled_from(
    ["100% sure", 'say "hi"', "a\r\nNats-Msg-Id: x", "日本\u200b語", "%41", "\x00", "🧠"]
)
numbers = st.integers(min_value=0, max_value=2**63)

envelopes = st.builds(
    Envelope,
    id=st.builds(event_id, any_text, st.just("reflex"), st.integers(0, 9)),
    topic=st.sampled_from(["forged_id.reflex.blocked", "forged_id.resolved"]),
    source=any_text,
    time=st.datetimes().map(lambda moment: moment.isoformat() + "Z"),
    agent=any_text,
    session=any_text,
    exchange=any_text,
    cause=any_text,
    cause_seq=numbers,
    index=st.integers(0, 9),
    count=st.integers(10, 2**63),
    version=numbers,
    build=any_text,
    traceparent=st.sampled_from(["", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"]),
)


def minimal(**changes: str) -> dict[str, str]:
    headers = encode_headers(Envelope(id="1", topic="forged_id.resolved", source="review", time=""))
    return headers | {f"ce-{name}": value for name, value in changes.items()}


@given(envelopes)
def test_an_envelope_survives_its_headers(envelope: Envelope) -> None:
    assert decode_headers(encode_headers(envelope)) == envelope


@given(envelopes)
def test_header_values_are_printable_ascii_without_quotes(envelope: Envelope) -> None:
    for value in encode_headers(envelope).values():
        assert all(" " < character <= "~" and character != '"' for character in value)


@given(envelopes)
def test_empty_attributes_are_left_out(envelope: Envelope) -> None:
    headers = encode_headers(envelope)
    for name in ("agent", "session", "exchange", "cause", "build"):
        assert (f"ce-{name}" in headers) == bool(getattr(envelope, name))


def test_the_message_id_is_the_event_id() -> None:
    assert encode_headers(Envelope(id="abc", topic="forged_id.resolved", source="x", time=""))[MESSAGE_ID] == "abc"


def test_the_binding_s_own_characters_are_percent_encoded() -> None:
    headers = encode_headers(Envelope(id="1", topic="forged_id.resolved", source="x", time="", agent='Euro € "5%" 😀'))
    assert headers["ce-agent"] == "Euro%20%E2%82%AC%20%225%25%22%20%F0%9F%98%80"


@each("name", ["ce-id", "ce-type"])
def test_a_missing_required_attribute_is_undecodable(name: str) -> None:
    headers = minimal()
    del headers[name]
    with pytest.raises(UndecodableEvent, match=name):
        decode_headers(headers)


@each("changed", [{"causeseq": "-1"}, {"index": "-1"}, {"index": "1"}, {"index": "2", "count": "2"}, {"count": "0"}])
def test_a_number_out_of_its_range_is_undecodable(changed: dict[str, str]) -> None:
    """An own event with index -1 would leave its decision open, and the partition would wait for the rest of it."""
    with pytest.raises(UndecodableEvent, match="out of range"):
        decode_headers(minimal(**changed))


@each("name", ["causeseq", "index", "count", "dataversion"])
def test_a_number_that_is_none_is_undecodable(name: str) -> None:
    with pytest.raises(UndecodableEvent, match="not a number"):
        decode_headers(minimal(**{name: "seven"}))


@given(st.dictionaries(st.sampled_from(sorted(minimal())) | st.text(), any_text | st.text(alphabet="0123456789-+_%")))
def test_foreign_headers_are_undecodable_or_an_envelope(headers: dict[str, str]) -> None:
    with suppress(UndecodableEvent):
        assert isinstance(decode_headers(headers), Envelope)
