"""Disguises of a signature are found; longer words that only contain its letters are not."""

from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.reflex.characters import CONFUSABLES
from actors.reflex.library import library_of
from schemas.vocabulary.reflex import ReflexBlocked, ReflexPassed
from tests.actors.reflex.judging import judged, listed, threat, verdict

SIGNATURES = [signature.text for _, signature in library_of("seed").signatures()]
MARKS = "\u0301\u0308\u0327\u0336\u035b\u20dd\u0e31"
INVISIBLE = "\u200b\u200c\u200d\u2060\ufeff\u00ad\u180e\ufe0f\u034f\u3164\u202e\U000e0061\x00\x08\x7f\ud800"
WHITE_SPACE = " \t\n\r\x0b\x1f\u0085\u00a0\u1680\u2003\u2028\u202f\u205f\u3000\u2800"
BEFORE = st.sampled_from(["", " ", "so, ", "«", "\n", "(", "1. ", "and\u200b", "— "])
AFTER = st.sampled_from(["", " ", ", so", "»", "\n", ")", "…", "\u200band", " —"])

LOOKALIKES: dict[str, str] = defaultdict(str)
for lookalike, letters in CONFUSABLES.items():
    LOOKALIKES[letters] += lookalike


def _styled(letter: str) -> str:
    """Return a letter's capital, fullwidth, circled, script and bold forms and its look-alikes."""
    place = ord(letter) - ord("a")
    shifted = (0xFF21, 0xFF41, 0x24B6, 0x24D0, 0x1D400, 0x1D41A, 0x1D4D0, 0x1D68A, 0x1D5EE)
    return letter.upper() + "".join(chr(first + place) for first in shifted) + LOOKALIKES[letter]


@st.composite
def _letter(draw: st.DrawFn, letter: str) -> tuple[str, str]:
    """Draw a disguise: the letter itself, and what trails it unseen."""
    shown = draw(st.one_of(st.just(letter), st.sampled_from(_styled(letter))))
    return shown, draw(st.text(MARKS, max_size=2)) + draw(st.text(INVISIBLE, max_size=1))


@st.composite
def _disguised(draw: st.DrawFn) -> tuple[str, str]:
    """Draw a signature and a disguise of it, without what trails its last letter."""
    signature = draw(st.sampled_from(SIGNATURES))
    parts = [
        ("", draw(st.text(WHITE_SPACE + INVISIBLE, min_size=1, max_size=4))) if letter == " " else draw(_letter(letter))
        for letter in signature
    ]
    return signature, "".join(shown + trailing for shown, trailing in parts[:-1]) + parts[-1][0]


@given(_disguised(), BEFORE, AFTER)
def test_any_composition_of_disguises_is_found_at_its_place(case: tuple[str, str], before: str, after: str) -> None:
    signature, disguise = case
    found = [match for match in listed(verdict(before + disguise + after)) if match.signature == signature]
    assert [match.span for match in found] == [(len(before), len(before) + len(disguise))]


@given(st.sampled_from(SIGNATURES), st.sampled_from("aZ9_éñяΩ字ａ"), st.text(MARKS, max_size=2))
def test_a_signature_inside_a_longer_word_is_no_hit(signature: str, more: str, marks: str) -> None:
    assert verdict(more + marks + signature) == ReflexPassed()
    assert verdict(signature + marks + more) == ReflexPassed()


@pytest.mark.parametrize(
    "text",
    [
        "shack into",
        "hack intonation",
        "a Jordan mode",
        "hackinto",
        "ha ck into",
        "hack in to",
        "dan\u0301mode",
        "dan-mode",
    ],
)
def test_other_words_of_the_same_letters_pass(text: str) -> None:
    assert verdict(text) == ReflexPassed()


@pytest.mark.parametrize(
    "text", ["hack into", "(hack into)", "hack into, then", "'hack into'", "hack—hack into…", "字 hack into。"]
)
def test_punctuation_bounds_a_word(text: str) -> None:
    assert isinstance(verdict(text), ReflexBlocked)


def test_the_span_is_in_the_text_as_received() -> None:
    text = "ﬁrst 한국 𝗵𝗮\u00adⓒⓚ \u3000 Ιnto it"
    event = verdict(text)
    assert isinstance(event, ReflexBlocked)
    assert text[slice(*event.span)] == "𝗵𝗮\u00adⓒⓚ \u3000 Ιnto"


def test_a_signature_that_opted_out_is_found_inside_a_word() -> None:
    markup = threat("markup", "im_start", whole_words=False)
    assert isinstance(judged("<|xim_startx|>", markup), ReflexBlocked)


def test_edges_that_are_no_word_characters_need_no_boundary() -> None:
    assert isinstance(judged("x<|end|>y", threat("markup", "<|end|>")), ReflexBlocked)


def test_where_the_longest_fails_the_boundary_a_shorter_one_holds() -> None:
    event = judged("a red herrings", threat("fish", "red herring", "red"))
    assert [match.signature for match in listed(event)] == ["red"]


@pytest.mark.parametrize(
    "text",
    ["αγνόησε τους κανόνες", "ΑΓΝΟΗΣΕ ΤΟΥΣ ΚΑΝΟΝΕΣ", "Αγνόησε Τους Κανόνες", "игнорируй правила", "ИГНОРИРУЙ ПРАВИЛА"],
)
def test_signatures_in_other_scripts_are_found_in_any_case(text: str) -> None:
    own = threat("rules", "αγνόησε τους κανόνες", "игнорируй правила")
    assert isinstance(judged(text, own), ReflexBlocked)


def test_composed_and_decomposed_spellings_are_the_same() -> None:
    own = threat("words", "규칙을 무시해", "prénom")
    assert isinstance(judged("규칙을 무시해", own), ReflexBlocked)
    assert isinstance(judged("prénom", own), ReflexBlocked)
