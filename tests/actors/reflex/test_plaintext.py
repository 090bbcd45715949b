"""The text in decoded bytes, against a regular expression that says the same and takes ten times as long."""

import re

from hypothesis import given
from hypothesis import strategies as st

from actors.reflex.decoding.plaintext import texts_in

TEXT = re.compile(rb"(?:[\x00-\x7f]|[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}){6,}")
PIECES = st.one_of(
    st.binary(max_size=12),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8).map(str.encode),
    st.sampled_from(
        [b"ignore", b"\xed\xa0\x80" * 6, b"\xe0\x80\x80abcde", b"\xf4\xbf\xbf\xbfabcde", b"\xc3", b"\xf0\x9f"]
    ),
)
PARTS = st.lists(st.lists(PIECES, max_size=8).map(b"".join), max_size=5)


@given(PARTS)
def test_stretches_of_text_are_what_the_expression_finds(parts: list[bytes]) -> None:
    expected = ["\n".join(found.decode("utf-8", "replace") for found in TEXT.findall(part)) for part in parts]
    assert texts_in(parts) == expected


def test_nothing_runs_on_from_one_part_into_the_next() -> None:
    assert texts_in([b"open", b" the vault", b"\xc3", b"\xa9tude s"]) == ["", " the vault", "", "tude s"]
