"""Words that may be encoded are told for all of a text at once: as looking at each by itself would."""

import re

from hypothesis import given
from hypothesis import strategies as st

from actors.contract.text.decoding import decoded_texts
from actors.contract.text.decoding.encoded_words import long_tokens, words_in

TEXTS = st.text(st.sampled_from("aAbBzZ029+/-_=. \n\t\u00a0\u2003\u00e9"), max_size=200)


@given(TEXTS)
def test_long_tokens_are_those_of_all_tokens(text: str) -> None:
    assert long_tokens(text, 5) == [token for token in text.split() if len(token) >= 5]


@given(TEXTS)
def test_words_are_found_with_their_places(text: str) -> None:
    plain = text.encode("ascii", "replace")
    each = list(enumerate(re.findall(r"[A-Za-z0-9+/_-]+", plain.decode())))
    words = words_in(plain)
    assert list(words.long(4)) == [word for _, word in each if len(word) >= 4]
    mixed = re.compile(r"[a-z][A-Z0-9]|[A-Z]{2}[a-z]|[0-9][A-Za-z]")
    assert list(words.mixed(3, 9)) == [
        (place, word)
        for place, word in each
        if 3 <= len(word) <= 9 and mixed.search(word) and re.search("[a-z]", word) and re.search("[A-Z]", word)
    ]
    pairs = [(place, word) for place, word in each if re.fullmatch(r"(?:[0-9a-fA-F]{2}){2,4}", word)]
    assert set(pairs) <= set(words.hex(4, 8))


def test_names_in_small_letters_with_digits_are_no_base64() -> None:
    assert not decoded_texts(" ".join(["a28"] * 40))
