"""Lists that people write, and the lines their mistakes are on."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deploy.operating.guarding import item_files
from deploy.operating.guarding.item_files import BadFile, Item, items_of
from tests.each import each

TWO = [Item(1, {"a": 1}), Item(2, {"a": 2})]


@each(
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


@each("raw", [b"", b"\n", b"# nothing\n"])
def test_an_empty_file_has_no_items(raw: bytes) -> None:
    assert items_of("f.yaml", raw) == []


@each(
    ("name", "raw", "message"),
    [
        ("f.jsonl", b'{"a": 1}\n{"a": }\n', "f.jsonl, line 2: not JSON"),
        ("f.json", b'[{"a": 1},\n\n {"a": }]', "f.json, line 3: not JSON"),
        ("f.json", b'[{"a": 1},\n', "f.json, line 2: not JSON"),
        ("f.json", b'{"a": 1}', "f.json, line 1: not a list"),
        ("f.yaml", b"- a: 1\n- b: [1\n", "f.yaml, line 3: not YAML"),
        ("f.yaml", b"a: 1\n", "f.yaml, line 1: not a list"),
        ("f.yaml", b"- &x a\n- *x\n", "f.yaml, line 2: not YAML: aliases are not supported"),
        ("f.yaml", b"- !!python/object:os.system {}\n", "f.yaml, line 1: 'python/object:os.system' is no type"),
        ("f.yaml", b"- a: 1\n- !!set {a, b}\n", "f.yaml, line 2: 'set' is no type of value here"),
        ("f.yaml", b"- a: 2024-01-01\n", "f.yaml, line 1: 'timestamp' is no type of value here: write text (in quotes"),
        ("f.yaml", b"- a: 1\n  b: 2\n  a: 3\n", "f.yaml, line 3: the key 'a' stands twice in one mapping"),
        ("f.yaml", b'- a: {x: 1, "x": 2}\n', "f.yaml, line 1: the key 'x' stands twice in one mapping"),
        ("f.json", b'[1,\n {"a": 1,\n "a": 2}]', "f.json, line 2: the key 'a' stands twice in one mapping"),
        ("f.jsonl", b'{"a": 1}\n{"b": {"a": 1, "a": 1}}\n', "f.jsonl, line 2: the key 'a' stands twice"),
        ("f.yaml", b"- a: 1\n  <<: {b: 2}\n", "f.yaml, line 2: '<<' is not supported: repeat the keys"),
        ("f.yaml", b"- ? [a]\n  : 1\n", "f.yaml, line 1: a list or a mapping is no key"),
        ("f.yaml", b'- a\n- "\\ud800"\n', "f.yaml, line 2: a lone surrogate"),
        ("f.json", b'[1,\n "\\ud800"]', "f.json, line 2: a lone surrogate"),
        ("f.json", b'[1,\n "x\\uDFFFx"]', "f.json, line 2: a lone surrogate"),
        ("f.jsonl", b'1\n"\\ud83dx"\n', "f.jsonl, line 2: a lone surrogate"),
        ("f.yaml", b"- !!int x\n", "f.yaml, line 1: not YAML: invalid literal"),
        ("f.yaml", b"- a: 1\n- \xff\n", "f.yaml, line 2: not UTF-8"),
        ("f.yaml", b"- 1\n- \x00\n", "f.yaml, line 2: not YAML: the control character U+0000"),
        ("f.yaml", b"- 1\n---\n- 2\n", "f.yaml, line 2: not YAML"),
        ("f.json", b"[" * 100_000, "f.json, line 1: not JSON"),
        ("f.yaml", b"[" * 100_000, "not YAML"),
    ],
)
def test_a_bad_file_is_refused_with_the_line(name: str, raw: bytes, message: str) -> None:
    with pytest.raises(BadFile) as refused:
        items_of(name, raw)
    assert message in str(refused.value)


def test_a_surrogate_pair_is_a_character() -> None:
    assert items_of("f.json", b'["\\ud83d\\ude00"]') == [Item(1, "😀")]
    assert items_of("f.jsonl", b'"\\ud83d\\ude00"') == [Item(1, "😀")]


def test_a_file_that_is_too_large_is_refused_before_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(item_files, "MAX_FILE_BYTES", 2 * 1024 * 1024)
    with pytest.raises(BadFile, match=r"f\.yaml: more than 2 MiB: split it into several files"):
        items_of("f.yaml", b"[" * (2 * 1024 * 1024 + 1))


@given(raw=st.binary(max_size=60) | st.text("[]{}-: \n&*!|>'\"#,ab1\t", max_size=40).map(str.encode))
def test_any_bytes_are_read_or_refused(raw: bytes) -> None:
    for name in ("f.json", "f.jsonl", "f.yaml", "-"):
        assert read_or_refused(name, raw)


def read_or_refused(name: str, raw: bytes) -> bool:
    try:
        return all(item.line >= 1 for item in items_of(name, raw))
    except BadFile as refused:
        return str(refused).startswith(name)
