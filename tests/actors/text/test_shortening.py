"""Texts that are too long keep both ends and what they ask."""

import re

from hypothesis import example, given
from hypothesis import strategies as st

from actors.contract.text.shortening import estimate, shares, shorten
from tests.each import each

LINES = "".join(f"{number:03}: the pump was idle.\n" for number in range(400))
words = st.text(max_size=400) | st.text("ab? \n", max_size=4000) | st.text("日本語？", max_size=2000)


@given(words, words)
def test_two_texts_joined_are_no_more_tokens_than_both(first: str, second: str) -> None:
    assert estimate(first + second) <= estimate(first) + estimate(second)


@each(("text", "tokens"), [("", 0), ("abcd", 1), ("abcde", 2), ("日本", 2), ("é", 1)])
def test_tokens_are_estimated_from_characters(text: str, tokens: int) -> None:
    assert estimate(text) == tokens


@given(words, st.integers(0, 600), st.sampled_from([estimate, len]))
@example("日" * 100, 10, estimate)
@example("word " * 100, 60, estimate)
@example("why? " * 1000, 200, len)
def test_a_shortened_text_fits_and_what_is_left_of_it_is_counted(text: str, most: int, size) -> None:
    found = shorten(text, most, size)
    assert size(found.text) <= most
    assert (found.text == text) == (size(text) <= most)
    assert (found.characters, found.kept == found.characters) == (len(text), size(text) <= most)
    left_out = sum(
        int(count.replace(",", "")) for count in re.findall(r"\[… ([\d,]+) characters left out …\]", found.text)
    )
    if left_out:
        assert left_out == found.characters - found.kept


@each(
    "text",
    [
        f"{LINES}What is wrong with my pump?",
        f"What is wrong with my pump?\n{LINES}",
        f"{LINES[:4000]}\nWhat is wrong with my pump?\n{LINES[4000:]}",
        f"{LINES[:4000]} It was idle. What is wrong with my pump? {LINES[4000:]}",
        f"{LINES[:6000]}\nTask: say what is wrong with my pump\n{LINES[6000:]}",
        f"{'是吗？' * 100}{LINES}\nWhat is wrong with my pump?\n{LINES}",
        f"{'Is it? ' * 900}\nWhat is wrong with my pump?\n{'Is it? ' * 900}",
    ],
    named=[
        "at the end", "at the beginning", "between two parts", "in a line", "as a task", "after others", "among many",
    ],
)  # fmt: skip
def test_the_question_is_kept_wherever_it_stands(text: str) -> None:
    found = shorten(text, 500)
    assert "what is wrong with my pump" in found.text.lower()
    assert found.kept < found.characters


def test_both_ends_are_kept_and_the_gap_is_told() -> None:
    found = shorten(LINES, 300)
    assert found.text.startswith("000: the pump")
    assert found.text.endswith("399: the pump was idle.\n")
    assert re.search(r"\n\[… [\d,]+ characters left out …\]\n", found.text)


def test_an_address_with_a_query_is_no_question() -> None:
    text = f"{LINES[:4000]}\nhttp://pump.example/?id=1\n{LINES[4000:]}"
    assert "pump.example" not in shorten(text, 500).text


def test_with_little_room_the_beginning_is_kept_alone() -> None:
    assert shorten("word " * 100, 10).text == "word word word word word word wo […]"
    assert shorten("word " * 100, 2).text == ""


@given(st.lists(st.integers(0, 100), max_size=8), st.integers(-10, 300))
def test_a_room_is_shared_so_that_small_needs_are_met_first(needs: list[int], room: int) -> None:
    given_ = shares(needs, room)
    assert all(got <= need for got, need in zip(given_, needs, strict=True))
    assert sum(given_) <= max(0, room)
    if sum(needs) <= room:
        assert given_ == needs
