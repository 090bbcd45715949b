"""The matcher against a slow reference, on an alphabet small enough for hits to be common."""

import re
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.reflex import matcher as module
from actors.reflex.decider import judge
from actors.reflex.library import make_library
from actors.reflex.matcher import (
    BYTES_A_CANDIDATE,
    CANDIDATES_PER_INPUT,
    MAX_TOGETHER,
    READINGS,
    WINDOW,
    compile_library,
)
from actors.reflex.settings import ReflexSettings
from schemas.vocabulary.gateway import InputReceived, Layer
from schemas.vocabulary.reflex import ReflexBlocked
from tests.actors.reflex.judging import judged, matcher, threat
from tests.each import each

MARK, INVISIBLE = "\u0301", "\u200b"
PHRASES = st.from_regex(r"[ab-]{1,3}( [ab-]{1,2}){0,2}", fullmatch=True)
TEXTS = st.text("ab-é " + MARK + INVISIBLE, max_size=30)


def _inside_word(text: str, left: str, right: str) -> bool:
    before = left.rstrip(MARK)[-1:]
    return before in tuple("abé") and right[:1] in tuple("abé")


def _places(phrase: str, text: str) -> list[tuple[int, int]]:
    """Find a phrase by trying every offset with a regular expression of its own."""
    unseen, space = f"[{MARK}{INVISIBLE}]*", f"[{MARK}{INVISIBLE} ]*[{INVISIBLE} ][{MARK}{INVISIBLE} ]*"
    words = [unseen.join(map(re.escape, word)) for word in phrase.split(" ")]
    expression = re.compile(space.join(words))
    found = (expression.match(text, start) for start in range(len(text)))
    spans = [match.span() for match in found if match]
    return [
        (start, end)
        for start, end in spans
        if not _inside_word(text, text[:start], text[start:])
        and not _inside_word(text, text[:end], text[end:].lstrip(MARK))
    ]


@settings(max_examples=200)
@given(st.lists(PHRASES, min_size=1, max_size=6, unique=True), TEXTS)
def test_the_automaton_finds_what_trying_every_offset_finds(phrases: list[str], text: str) -> None:
    hits = matcher(threat("own", *phrases)).find(text, 1000, ("plain",)).hits
    # The reference does not fold; "é" is the only character that folds to another, and no phrase has an "e".
    expected = [(rank, *span) for rank, phrase in enumerate(phrases) for span in _places(phrase, text)]
    assert [(hit.rank, hit.start, hit.end) for hit in hits] == sorted(expected)


def test_a_signature_is_reported_no_more_often_than_the_limit() -> None:
    hits = matcher(threat("own", "a", "b")).find("a a b a a b", 2).hits
    assert [(hit.rank, hit.start) for hit in hits] == [(0, 0), (0, 2), (1, 4), (1, 10)]


def test_libraries_of_equal_content_are_compiled_once() -> None:
    one, other = (make_library((threat("own", "some phrase"),)) for _ in range(2))
    assert one == other
    assert compile_library(one) is compile_library(other)


def test_r7_a_library_of_10_000_signatures_finds_each_of_them() -> None:
    words = ["".join(letters) for letters in product("bcdfghjklm", repeat=4)]
    phrases = [f"{one} {other}" for one, other in zip(words, reversed(words), strict=True)]
    hits = matcher(threat("own", *phrases)).find(". ".join(phrases), 1).hits
    assert [hit.rank for hit in hits] == list(range(10_000))


def test_a_signature_shows_in_the_first_reading_that_has_it() -> None:
    own = matcher(threat("own", "hack into"))
    hits = own.find("h4ck into, hack into, h a c k i n t o", 10).hits
    assert [(READINGS[hit.reading], hit.start) for hit in hits] == [("plain", 11)]
    hits = own.find("h4ck into, h a c k i n t o", 10).hits
    assert [(READINGS[hit.reading], hit.start) for hit in hits] == [("spaced", 11)]


def test_an_i_for_an_l_reads_as_leetspeak() -> None:
    (hit,) = matcher(threat("own", "all rules")).find("AIl rules", 10).hits
    assert READINGS[hit.reading] == "leetspeak"


def test_only_the_wanted_readings_are_reported() -> None:
    own = matcher(threat("own", "hack into"))
    assert own.find("h4ck into uryyb unpx vagb", 10, ("plain",)).hits == []
    assert [READINGS[hit.reading] for hit in own.find("h4ck into unpx vagb", 10, ("plain", "rot13")).hits] == ["rot13"]


def test_a_short_signature_is_not_looked_for_in_rot13() -> None:
    assert matcher(threat("own", "dan")).find("the qna page", 10).hits == []


@settings(max_examples=200)
@given(st.lists(PHRASES, min_size=1, max_size=6, unique=True), st.text("ab-é " + MARK + INVISIBLE, max_size=150))
def test_the_windows_of_a_text_show_each_hit_once(phrases: list[str], text: str) -> None:
    own = matcher(threat("own", *phrases))
    whole = own.find(text, 1000)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "WINDOW", 8)
        assert own.find(text, 1000).hits == whole.hits


@each("text", ["a" * 100_000, "a b " * 25_000, "ab" * 50_000], named=["a", "a b", "ab"])
def test_a_library_in_which_none_ends_in_another_is_found_in_any_text(text: str) -> None:
    found = matcher(threat("own", "a", "b")).find(f"{text} b", 10)
    assert 1 in {hit.rank for hit in found.hits}


def chain(length: int) -> tuple[str, ...]:
    return tuple("a" * letters for letters in range(1, length + 1))


@each("text", ["a" * 40_000, "a " * 20_000, "a\u200b" * 20_000], named=["joined", "apart", "either"])
def test_candidates_are_bounded_by_the_text_whatever_ends_in_one_another(text: str) -> None:
    found = matcher(threat("own", *chain(32))).find(text, 10)
    assert found.unread or found.candidates_left > 0
    earned = 2 * len(text) // BYTES_A_CANDIDATE + 2  # in both passes, one of them in rot13
    assert CANDIDATES_PER_INPUT + earned - found.candidates_left <= CANDIDATES_PER_INPUT + earned + 32 * WINDOW


@each("length", [32, MAX_TOGETHER + 1])
@each("flood", ["a" * 60_000, "a " * 30_000], named=["joined", "apart"])
def test_a_flood_of_candidates_hides_no_hit_before_within_or_behind_it(length: int, flood: str) -> None:
    sets = threat("flood", *chain(length), action="FLAG"), threat("own", "open the vault")
    for text in (f"open the vault {flood}", f"{flood} open the vault {flood}", f"{flood} open the vault"):
        event = judged(text, *sets)
        assert isinstance(event, ReflexBlocked)
        assert event.signature == "open the vault"
        assert [each.what for each in event.unread] == ["overlaps"]


def test_candidates_are_shared_by_the_parts_of_an_input() -> None:
    layers = tuple(Layer(role="tool", content="a" * 900) for _ in range(4))
    own = threat("own", *chain(32))
    assert not judged("a" * 900, own).unread
    assert judge(matcher(own), ReflexSettings(), InputReceived(text="", layers=layers)).unread


def test_a_short_text_is_searched_in_full_even_by_the_deepest_library_an_import_may_make() -> None:
    event = judged("a" * 900 + " aa", threat("own", *chain(32)))
    assert isinstance(event, ReflexBlocked)
    assert [(match.signature, event.unread) for match in event.matches] == [("aa", ())]
