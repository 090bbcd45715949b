import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.reading.escapes import unescaped


@given(st.lists(st.text(), min_size=1))
def test_a_document_of_json_reads_as_its_values_say(values: list[str]) -> None:
    written = msgspec.json.encode(values).decode()
    assert unescaped(written) == "[" + ",".join(f'"{value}"' for value in values) + "]"


@pytest.mark.parametrize(
    "text",
    [
        "no string, a path: C:\\temp\\new",
        'a string without an escape: "as it is" and a \\ outside',
        'no JSON: "\\d+\\."',
        'unclosed: "one\\n',
        'a lone backslash at the end: "one\\',
        "",
    ],
)
def test_what_is_no_string_of_json_stays_as_it_is(text: str) -> None:
    assert unescaped(text) == text


def test_strings_in_prose_and_doubled_keys_are_read_too() -> None:
    text = 'The tool said {"a": "one\\ntwo", "a": "three\\tfour"} and "five\\nsix".'
    assert unescaped(text) == 'The tool said {"a": "one\ntwo", "a": "three\tfour"} and "five\nsix".'


@pytest.mark.parametrize("piece", ['\\"', '"\\', '"', "\\", '"\\n'])
def test_hostile_quotation_is_looked_at_once(piece: str) -> None:
    # Looked at once for each quotation mark, this would take minutes.
    unescaped('"' + piece * 200_000)
