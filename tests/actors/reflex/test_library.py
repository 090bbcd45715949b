import pytest

from actors.reflex.library import InvalidLibrary, make_library, parse_library
from tests.actors.reflex.judging import threat


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"", "truncated"),
        (b"\xff", "bad.json"),
        (b'{"name": "x"}', "Expected `array`"),
        (b'[{"name": "x", "action": "WARN", "confidence": 1, "signatures": [{"text": "a"}]}]', "WARN"),
        (b'[{"name": "x", "action": "FLAG", "confidence": 2, "signatures": [{"text": "a"}]}]', "confidence"),
        (b'[{"name": "x", "action": "FLAG", "confidence": 1, "signatures": []}]', "signatures"),
        (b'[{"name": "x", "action": "FLAG", "confidence": 1, "signatures": [{"txt": "a"}]}]', "txt"),
    ],
)
def test_a_malformed_library_is_refused_with_its_source_and_place(data: bytes, complaint: str) -> None:
    with pytest.raises(InvalidLibrary, match=f"(?s)bad.json: .*{complaint}|{complaint}: "):
        parse_library(data, "bad.json")


def test_two_sets_of_one_name_are_refused() -> None:
    with pytest.raises(InvalidLibrary, match="two pattern sets are named 'same'"):
        make_library((threat("same", "a"), threat("same", "b")))


def test_a_signature_listed_twice_is_refused() -> None:
    with pytest.raises(InvalidLibrary, match="'a' is listed twice"):
        make_library((threat("own", "a", "a"),))


@pytest.mark.parametrize("text", [" ", "\u200b", "\u0301", "\ud800"])
def test_a_signature_without_visible_characters_is_refused(text: str) -> None:
    with pytest.raises(InvalidLibrary, match="no visible character"):
        make_library((threat("own", text),))


def test_the_order_of_sets_is_part_of_the_content() -> None:
    first, second = threat("first", "a"), threat("second", "b")
    assert make_library((first, second)) != make_library((second, first))
