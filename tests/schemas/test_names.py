"""What may be a name, and that envelopes with other names are read all the same."""

from hypothesis import given
from hypothesis import strategies as st

from schemas.envelope import Envelope, decode_headers, encode_headers
from schemas.names import MAX_NAME_BYTES, MAX_NAME_CHARACTERS, wrong_with_name


@given(st.text(st.characters(), max_size=300))
def test_a_name_that_is_let_in_is_one_line_of_unicode_and_no_longer_than_it_may_be(name: str) -> None:
    if wrong_with_name(name) is None:
        assert len(name) <= MAX_NAME_CHARACTERS
        assert len(name.encode()) <= MAX_NAME_BYTES
        assert len(f"{name}.".splitlines()) == 1


@given(a=st.text(max_size=4), b=st.text(max_size=4), c=st.text(max_size=4), d=st.text(max_size=4))
def test_names_that_are_let_in_make_keys_of_their_own(a: str, b: str, c: str, d: str) -> None:
    if all(wrong_with_name(name) is None for name in (a, b, c, d)):
        assert (f"{a}\n{b}" == f"{c}\n{d}") == ((a, b) == (c, d))


def test_a_name_from_before_the_rules_is_still_read() -> None:
    envelope = Envelope(
        id="1", topic="forged_id.reflex.passed", source="s", time="", agent="a\nb", session="\x7f" * 300
    )
    assert decode_headers(encode_headers(envelope)) == envelope
