import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from actors.contract.text.lookalikes import CONFUSABLES
from actors.reflex import normalise
from actors.reflex.fold_table import EXPANDED, MAX_EXPANSION, fold_character, fold_table, values_of
from actors.reflex.normalise import codes_of, lay_out, squeeze
from tests.each import each

CHARACTERS = st.characters()


def _tabled(char: str) -> tuple[int, ...]:
    table = fold_table()
    value = int(table.single[ord(char)])
    if value > EXPANDED:
        return (value,)
    entry = EXPANDED - value
    return tuple(table.pool[table.start[entry] : table.start[entry + 1]].tolist())


@given(CHARACTERS)
def test_the_table_says_what_folding_the_character_says(char: str) -> None:
    assert _tabled(char) == values_of(char)


def test_the_table_agrees_with_folding_on_every_character_that_can_fold() -> None:
    codes = [*range(0xD800), *range(0xF900, 0x20000), *range(0x2F800, 0x2FA20)]
    assert [hex(code) for code in codes if _tabled(chr(code)) != values_of(chr(code))] == []


@given(CHARACTERS)
def test_folding_twice_changes_nothing(char: str) -> None:
    once = fold_character(char)
    assert "".join(map(fold_character, once)) == once


@given(st.text(st.characters(max_codepoint=127)))
def test_the_fast_path_for_ascii_gives_what_the_table_gives(text: str) -> None:
    # An Armenian full stop folds to itself, and sends the whole text through the table.
    assert squeeze(text + "\u0589") == squeeze(text) + "\u0589".encode()


@given(st.text(CHARACTERS))
def test_a_layout_places_every_letter_of_the_squeezed_text(text: str) -> None:
    letters, layout = squeeze(text).decode(), lay_out(text)
    assert len(layout.origins) == len(letters)
    assert len(layout.gaps) == len(letters) + 1
    origins = layout.origins.tolist()
    assert origins == sorted(origins)
    assert all(ord(letter) in _tabled(text[place]) for letter, place in zip(letters, origins, strict=True))


@given(st.text(CHARACTERS))
def test_no_text_grows_beyond_the_bound(text: str) -> None:
    assert len(squeeze(text).decode()) <= MAX_EXPANSION * len(text)


@each(
    ("text", "gaps"),
    [
        ("ab", (normalise.SPACED, normalise.JOINED, normalise.SPACED)),
        ("a \u200bb", (normalise.SPACED, normalise.SPACED, normalise.SPACED)),
        ("a\u200bb", (normalise.SPACED, normalise.UNCERTAIN, normalise.SPACED)),
        ("a\u0301b", (normalise.SPACED, normalise.JOINED, normalise.SPACED)),
        ("\u0301", (normalise.SPACED,)),
    ],
)
def test_gaps_tell_space_from_nothing_and_from_what_may_be_either(text: str, gaps: tuple[int, ...]) -> None:
    assert lay_out(text).gaps == bytes(gaps)


def test_every_listed_look_alike_needs_listing() -> None:
    def without_the_list(char: str) -> str:
        folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", char).casefold())
        return "".join(part for part in folded if not unicodedata.combining(part))

    assert [char for char, letters in CONFUSABLES.items() if without_the_list(char) == letters] == []


@given(st.text(CHARACTERS | st.sampled_from("\x00\ud800\U0010ffff")))
def test_the_codes_of_a_text_are_its_code_points(text: str) -> None:
    assert codes_of(text).tolist() == list(map(ord, text))
