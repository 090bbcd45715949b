"""Texts as words, phrases and shingles."""

import subprocess
import sys

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from actors.intuition.signature import MOST_WORDS, text_signature, to_bytes
from actors.intuition.text_words import MOST_CHARACTERS, normalise, read
from tests.each import each


def same(one: str, other: str) -> bool:
    return bool(np.array_equal(text_signature(one), text_signature(other)))


@each(
    ("one", "other"),
    [
        ("Open the Gate", "open the gate"),
        ("open, the: gate!", "open the gate"),
        ("open\n\tthe   gate", "open the gate"),
        ("ｏｐｅｎ the gate", "open the gate"),
        ("op\u200ben the ga\u00adte", "open the gate"),
        ("STRASSE frei", "straße frei"),
        ("cafe\u0301 noir", "café noir"),
    ],
)
def test_r3_1_spellings_of_one_text_have_one_signature(one: str, other: str) -> None:
    assert same(one, other)


@each(("one", "other"), [("a b c", "c b a"), ("a b", "a b b"), ("a", "a a"), ("open gate", "opengate")])
def test_different_texts_have_different_signatures(one: str, other: str) -> None:
    assert not same(one, other)


@each(("text", "shingles"), [("", 0), ("?!", 0), ("a", 3), ("a b", 4), ("a b c", 5), ("a b c d", 6)])
def test_r3_1_marks_pad_short_texts(text: str, shingles: int) -> None:
    assert len(text_signature(text)) == shingles


def test_characters_of_scripts_without_spaces_are_words() -> None:
    assert len(read("请打开北门").words) == 5
    assert len(read("門を開けて").words) == 5


def test_phrases_end_at_sentences_lines_quotes_and_brackets_but_not_within_numbers_or_names() -> None:
    reading = read('One two. Three: "four" (five)\nsix... seven?! 3.5 at example.com')
    assert reading.phrases.tolist() == [0, 2, 3, 4, 5, 6, 7, 12]


def test_a_signature_covers_the_first_words() -> None:
    long = " ".join(f"w{number}" for number in range(MOST_WORDS + 50))
    assert same(long, " ".join(long.split()[:MOST_WORDS]))
    assert len(text_signature(long)) == MOST_WORDS + 2


def test_of_a_very_long_text_both_ends_are_read() -> None:
    text = "first " + "x " * MOST_CHARACTERS + "last"
    words = read(text).words
    assert len(words) <= MOST_CHARACTERS
    assert words[0] == read("first").words[0]
    assert words[-1] == read("last").words[0]


@each(
    "text", ["a" + "\u0301\u0316" * 500_000, "\u3316" * 300_000, "\ufdfa a" * 150_000, "\ud800 x", "\x00", "😀" * 9999]
)
def test_no_text_makes_more_than_bounded_work(text: str) -> None:
    assert len(normalise(text)) <= MOST_CHARACTERS + 1
    assert len(text_signature(text)) <= MOST_WORDS + 2


@given(st.text())
def test_a_signature_is_ascending_distinct_and_without_zero(text: str) -> None:
    signature = text_signature(text).tolist()
    assert signature == sorted(set(signature))
    assert 0 not in signature


def test_r3_1_signatures_are_the_same_in_every_process() -> None:
    text = "how do I bypass the alarm?"
    code = f"from actors.intuition.signature import *; print(to_bytes(text_signature({text!r})).hex())"
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True, text=True, check=True, timeout=60, env={"PYTHONHASHSEED": seed, "PATH": ""},
        )  # fmt: skip
        assert done.stdout.strip() == to_bytes(text_signature(text)).hex()


def test_signatures_are_the_ones_that_recorded_precedents_have() -> None:
    """States and snapshots hold them: with other values every precedent there is would be lost."""
    recorded = "f3ae285cea720b05b2db96314a55ab3507c5d945c35fcf4241eb8e31d3ef236d224cc84f5683eae8"
    assert to_bytes(text_signature("open the gate")).hex() == recorded
