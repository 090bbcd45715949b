"""Lists that people write, and the lines their mistakes are on."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deploy.item_files import BadFile, Item, items_of

TWO = [Item(1, {"a": 1}), Item(2, {"a": 2})]


@pytest.mark.parametrize(
    ("name", "raw"),
    [
        ("f.jsonl", b'{"a": 1}\n{"a": 2}\n'),
        ("f.ndjson", b'\xef\xbb\xbf{"a": 1}\r\n{"a": 2}'),
        ("-", b'{"a": 1}\n{"a": 2}\n'),
        ("f.json", b'[{"a": 1},\n {"a": 2}]'),
        ("-", b'[{"a": 1},\n {"a": 2}]'),
        ("f.yaml", b"- a: 1\n- a: 2\n"),
        ("f.YML", b"- {a: 1}\n- {a: 2}\n"),
        ("-", b"- a: 1\n- a: 2\n"),
    ],
)
def test_every_form_gives_the_items_and_their_lines(name: str, raw: bytes) -> None:
    assert items_of(name, raw) == TWO


def test_equal_items_of_an_array_have_their_own_lines() -> None:
    assert [item.line for item in items_of("f.json", b"[1,\n1,\n\n1, 1]")] == [1, 2, 4, 4]


@pytest.mark.parametrize("raw", [b"", b"\n", b"# nothing\n"])
def test_an_empty_file_has_no_items(raw: bytes) -> None:
    assert items_of("f.yaml", raw) == []


@pytest.mark.parametrize(
    ("name", "raw", "message"),
    [
        ("f.jsonl", b'{"a": 1}\n{"a": }\n', "f.jsonl, line 2: not JSON"),
        ("f.json", b'[{"a": 1},\n\n {"a": }]', "f.json, line 3: not JSON"),
        ("f.json", b'[{"a": 1},\n', "f.json, line 2: not JSON"),
        ("f.json", b'{"a": 1}', "f.json, line 1: not a list"),
        ("f.yaml", b"- a: 1\n- b: [1\n", "f.yaml, line 3: not YAML"),
        ("f.yaml", b"a: 1\n", "f.yaml, line 1: not a list"),
        ("f.yaml", b"- &x a\n- *x\n", "f.yaml, line 2: not YAML: aliases are not supported"),
        ("f.yaml", b"- !!python/object:os.system {}\n", "f.yaml, line 1: not YAML: could not determine a constructor"),
        ("f.yaml", b"- a: 1\n- \xff\n", "f.yaml, line 2: not UTF-8"),
        ("f.yaml", b"- \x00\n", "not YAML"),
        ("f.yaml", b"- 1\n---\n- 2\n", "f.yaml, line 2: not YAML"),
        ("f.json", b"[" * 100_000, "f.json, line 1: not JSON"),
    ],
)
def test_a_bad_file_is_refused_with_the_line(name: str, raw: bytes, message: str) -> None:
    with pytest.raises(BadFile) as refused:
        items_of(name, raw)
    assert message in str(refused.value)


@given(raw=st.binary(max_size=60) | st.text("[]{}-: \n&*!|>'\"#,ab1\t", max_size=40).map(str.encode))
def test_any_bytes_are_read_or_refused(raw: bytes) -> None:
    for name in ("f.json", "f.jsonl", "f.yaml", "-"):
        assert read_or_refused(name, raw)


def read_or_refused(name: str, raw: bytes) -> bool:
    try:
        return all(item.line >= 1 for item in items_of(name, raw))
    except BadFile as refused:
        return str(refused).startswith(name)
