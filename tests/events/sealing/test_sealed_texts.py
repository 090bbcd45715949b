"""What is sealed comes out again to the byte, and nothing else comes out."""

import base64

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from events.decoding import Recorded, Unreadable, decode
from events.errors import Refused
from events.log import Record, Seal
from events.sealing.cipher import SealBroken, SessionKey
from events.sealing.sealed_texts import (
    CLOSED_TEXT,
    KEY_DESTROYED,
    SEALED_HEADER,
    location_to_seal,
    open_texts,
    sealed_record,
)
from schemas.catalogue import CATALOGUE
from schemas.event import Event, encode_event
from schemas.vocabulary.gateway import InputReceived
from schemas.wording.personal import change_personal, personal_location
from tests.actors.strategies import events_for, texts
from tests.each import each
from tests.events.sealing.records import KEY, OTHER_KEY, recorded, said, stored

EVERY_EVENT = events_for(tuple(entry.event for entry in CATALOGUE.values()))
awkward = st.sampled_from(["nx1:", "nx0:", "nx0:nx1:x", "nx1:AAAA", '"nx1:', "\\", CLOSED_TEXT]) | texts


def sealed(record: Record, key: SessionKey | None = KEY) -> Record:
    part = location_to_seal(record.headers)
    return record if part is None else sealed_record(record, part, key)


@given(EVERY_EVENT)
def test_every_event_of_the_catalogue_comes_out_as_it_went_in(event: Event) -> None:
    record = recorded(event)
    message = open_texts(stored(sealed(record)), KEY)
    assert message.data == record.data
    assert message.seal is Seal.OPENED


@given(EVERY_EVENT)
def test_no_word_of_any_event_is_left_in_what_is_stored(event: Event) -> None:
    part = personal_location(type(event))
    if part is None:
        return
    body = msgspec.json.decode(sealed(recorded(event)).data)
    change_personal(part, body, lambda _place, text: text.startswith("nx1:") or pytest.fail(text))


@given(EVERY_EVENT)
def test_what_cannot_be_opened_still_is_the_event_with_a_mark_for_its_words(event: Event) -> None:
    record = sealed(recorded(event))
    if SEALED_HEADER not in record.headers:
        return
    message = open_texts(stored(record), None)
    assert message.seal is Seal.CLOSED
    found = decode(message)
    assert isinstance(found, Recorded)
    part = personal_location(type(event))
    assert part is not None
    assert found.message.event == change_personal(part, event, lambda _place, _text: CLOSED_TEXT)


@given(awkward, awkward, awkward)
def test_texts_that_look_sealed_survive_wherever_they_are(text: str, label: str, situation: str) -> None:
    record = recorded(InputReceived(text=text, label=label, situation=situation))
    once = sealed(record)
    message = stored(once)
    assert (open_texts(message, KEY) if SEALED_HEADER in once.headers else message).data == record.data


def test_the_same_event_sealed_twice_is_the_same_bytes() -> None:
    assert sealed(said("Hello")) == sealed(said("Hello"), SessionKey(b"k" * 32))


@each(
    ("one", "other"),
    [
        (said("Hello"), said("Hello", id="e2")),
        (said("Hello"), said("hello")),
        (recorded(InputReceived(text="a")), recorded(InputReceived(text="b"))),
    ],
    named=["another_event", "another_text", "one_letter"],
)
def test_different_things_share_no_sealed_text(one: Record, other: Record) -> None:
    assert sealed(one).data != sealed(other).data


def test_empty_texts_stay_empty_and_an_event_without_words_is_stored_as_it_is() -> None:
    record = said("")
    assert sealed(record) is record


def test_events_of_no_session_are_not_sealed() -> None:
    event = CATALOGUE["forged_id.precedent.recorded"].sample
    assert location_to_seal(recorded(event, session="").headers) is None


@given(st.data())
def test_a_changed_text_is_noticed(data: st.DataObject) -> None:
    body = msgspec.json.decode(sealed(said("My words are mine")).data)
    packed = bytearray(base64.urlsafe_b64decode(body["text"].removeprefix("nx1:")))
    place = data.draw(st.integers(0, len(packed) - 1))
    packed[place] ^= 1 << data.draw(st.integers(0, 7))
    body["text"] = "nx1:" + base64.urlsafe_b64encode(packed).decode()
    assert_broken(msgspec.structs.replace(sealed(said("My words are mine")), data=msgspec.json.encode(body)))


@each("text", ["nx1:", "nx1:AAAA", "nx1:not base64 \u2603", "nx1:A"])
def test_what_was_never_sealed_is_noticed(text: str) -> None:
    record = sealed(said("mine"))
    assert_broken(msgspec.structs.replace(record, data=encode_event(InputReceived(text=text))))


def test_a_text_moved_to_another_event_or_place_is_noticed() -> None:
    first, second = sealed(said("one", id="e1")), sealed(said("two", id="e2"))
    assert_broken(msgspec.structs.replace(second, data=first.data))
    moved = KEY.seal("e1", "/layers/0/content", "one")
    assert_broken(msgspec.structs.replace(first, data=encode_event(InputReceived(text=f"nx1:{moved}"))))


def test_another_key_does_not_open() -> None:
    with pytest.raises(SealBroken, match="another key"):
        OTHER_KEY.open("e1", "/text", KEY.seal("e1", "/text", "mine"))


def assert_broken(record: Record) -> None:
    message = open_texts(stored(record), KEY)
    assert message.seal is Seal.BROKEN
    assert message.data == record.data
    assert isinstance(decode(message), Unreadable)


def test_without_a_key_the_words_are_left_out_for_good() -> None:
    record = sealed(said("too late"), None)
    assert record.headers[SEALED_HEADER] == KEY_DESTROYED
    assert b"late" not in record.data
    event = decode(open_texts(stored(record), None))
    assert isinstance(event, Recorded)
    assert event.message.event == InputReceived(text=CLOSED_TEXT)


def test_a_body_whose_words_cannot_be_found_is_refused() -> None:
    with pytest.raises(Refused, match="cannot be sealed"):
        sealed(msgspec.structs.replace(said("x"), data=b'{"text":"half'))


def test_neither_key_nor_entry_shows_its_secret() -> None:
    secret = b"s" * 32
    assert "sss" not in repr(SessionKey(secret))
    with pytest.raises(ValueError, match="32 bytes"):
        SessionKey(b"short")
