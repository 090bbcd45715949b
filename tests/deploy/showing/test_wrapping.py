"""An answer is broken between words on a terminal, however its pieces come, and says the same."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from deploy.cli.rendering.layout.wrapping import WordWrapper, wrap_words
from tests.each import each

WORDS = st.text(st.sampled_from("abcä漢 \n"), max_size=200)


@given(text=WORDS, width=st.integers(8, 40), cuts=st.lists(st.integers(0, 200), max_size=5))
def test_however_a_text_is_cut_into_pieces_it_is_broken_alike(text: str, width: int, cuts: list[int]) -> None:
    wrapping, places = WordWrapper(width), [0, *sorted(cuts), len(text)]
    pieces = [text[first:last] for first, last in pairwise(places)]
    whole = "".join(pieces)
    assert "".join(map(wrapping.take, pieces)) + wrapping.rest() == wrap_words(whole, width)


@given(text=WORDS, width=st.integers(8, 40))
def test_no_word_that_fits_is_broken_and_none_is_lost(text: str, width: int) -> None:
    shown = wrap_words(text, width)
    assert shown.split() == text.split() or any(cell_len(word) >= width for word in text.split())
    assert "".join(shown.split()) == "".join(text.split())
    if all(cell_len(word) < width for word in text.split()):
        assert all(cell_len(line) <= width for line in shown.split("\n"))


@each("text", ["", "Lima.", "  indented\n\n  code", "a line of eight-character words and no more"])
def test_what_fits_stays_as_it_is(text: str) -> None:
    assert wrap_words(text, 80) == text
