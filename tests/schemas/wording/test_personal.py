"""Where people's words are, found by the types alone."""

from typing import Any

import msgspec
import pytest
from hypothesis import given

from schemas.catalogue import CATALOGUE
from schemas.event import Event, Personal, encode_event
from schemas.vocabulary.act import ActIterated
from schemas.vocabulary.gateway import InputReceived, Layer
from schemas.wording.personal import Location, change_personal, personal_location
from tests.actors.strategies import events_for

EVERY_EVENT = events_for(tuple(entry.event for entry in CATALOGUE.values()))


class Note(msgspec.Struct, frozen=True):
    words: Personal
    number: int = 0


class Deep(Event, frozen=True, kw_only=True, tag="forged_id.deep.noted"):
    notes: dict[str, tuple[Note, ...]]
    maybe: Note | None = None
    plain: str = ""


def part_of(kind: type[Event]) -> Location:
    part = personal_location(kind)
    assert part is not None
    return part


def places(event: Event) -> dict[str, str]:
    """Return an event's personal texts by their places."""
    found: dict[str, str] = {}
    part = personal_location(type(event))
    if part is not None:
        change_personal(part, event, lambda place, text: found.setdefault(place, text))
    return found


def test_words_are_found_in_structs_tuples_and_mappings_by_their_place() -> None:
    event = Deep(notes={"a/b": (Note("one"), Note("")), "c": (Note("two"),)}, maybe=Note("three"), plain="four")
    assert places(event) == {"/notes/a~1b/0/words": "one", "/notes/c/0/words": "two", "/maybe/words": "three"}


def test_words_in_a_field_that_has_another_name_in_bodies_are_at_that_name() -> None:
    class Renamed(Event, frozen=True, kw_only=True, tag="forged_id.renamed.noted"):
        words: Personal = msgspec.field(name="said")

    event = Renamed(words="one")
    assert places(event) == {"/said": "one"}
    assert change_personal(part_of(Renamed), event, lambda _place, text: text.upper()) == Renamed(words="ONE")


def test_an_event_that_holds_no_words_has_no_part() -> None:
    assert personal_location(CATALOGUE["forged_id.arbiter.escalated"].event) is None
    assert personal_location(ActIterated) is not None


def test_words_of_several_kinds_in_one_place_are_refused_rather_than_passed_over() -> None:
    class Other(msgspec.Struct, frozen=True, tag="other"):
        said: Personal

    class Tagged(msgspec.Struct, frozen=True, tag="tagged"):
        words: Personal

    class Either(Event, frozen=True, kw_only=True, tag="forged_id.either.noted"):
        one: Tagged | Other

    with pytest.raises(TypeError, match="put them into a struct"):
        personal_location(Either)


@given(EVERY_EVENT)
def test_an_event_and_its_body_hold_the_same_words_in_the_same_places(event: Event) -> None:
    part = personal_location(type(event))
    if part is None:
        return
    body: dict[str, Any] = msgspec.json.decode(encode_event(event))
    found: dict[str, str] = {}
    change_personal(part, body, lambda place, text: found.setdefault(place, text))
    assert found == places(event)


def test_nothing_but_words_changes_and_the_original_stays() -> None:
    event = InputReceived(text="mine", layers=(Layer(role="user", content="more"),), label="label")
    changed = change_personal(part_of(InputReceived), event, lambda _place, text: text.upper())
    assert changed == InputReceived(text="MINE", layers=(Layer(role="user", content="MORE"),), label="label")
    assert event.text == "mine"
